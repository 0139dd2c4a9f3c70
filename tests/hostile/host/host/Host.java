package host;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.security.ProtectionDomain;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Materialized;

/**
 * An application that has no broker. It says what it does on both outputs, obeys the words on its standard input, and exits with 7.
 *
 * <p>Arguments are settings, each {@code name=value}; {@code global} alone adds a global store.
 */
public final class Host {

    /** How long it takes to read the metrics, in milliseconds. */
    private static volatile long slow;

    private Host() {
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "host");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "127.0.0.1:1");
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        boolean global = false;
        for (String argument : arguments) {
            int at = argument.indexOf('=');
            if (at < 0) {
                global = argument.equals("global");
            } else {
                settings.put(argument.substring(0, at), argument.substring(at + 1));
            }
        }
        System.err.println("begins");
        KafkaStreams streams = new SlowStreams(topology(global), settings);
        System.out.println("constructed " + streams.state());
        BufferedReader words = new BufferedReader(new InputStreamReader(System.in));
        for (String word = words.readLine(); word != null; word = words.readLine()) {
            System.out.println(word + " " + obey(word, streams));
        }
        streams.close();
        System.out.println("closed " + streams.state());
        System.err.println("ends");
        System.exit(7);
    }

    private static Topology topology(boolean global) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("input").groupByKey().count(Materialized.as("counts"));
        if (global) {
            builder.globalTable("everywhere", Materialized.as("everything"));
        }
        return builder.build();
    }

    private static String obey(String word, KafkaStreams streams) throws Exception {
        switch (word) {
            case "start":
                streams.start();
                return streams.state().toString();
            case "start-aside":
                aside(() -> startUntilClosed(streams));
                return "begun";
            case "close-aside":
                aside(streams::close);
                return leaves(streams);
            case "clean":
                streams.cleanUp();
                return "done";
            case "slow":
                slow = 2_300;
                return "done";
            case "doors":
                return doors();
            case "halt":
                Runtime.getRuntime().halt(9);
                return "";
            default:
                return "unknown";
        }
    }

    /** Kafka's start() throws where a close ends its wait for the global store: that is the end this application wants. */
    private static void startUntilClosed(KafkaStreams streams) {
        try {
            streams.start();
        } catch (IllegalStateException e) {
            if (streams.state().isRunningOrRebalancing()) {
                throw e;
            }
        }
    }

    private static void aside(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
    }

    /** Whether the instance begins to shut down within five seconds. */
    private static String leaves(KafkaStreams streams) throws InterruptedException {
        for (int i = 0; i < 50 && streams.state().isRunningOrRebalancing(); i++) {
            TimeUnit.MILLISECONDS.sleep(100);
        }
        return streams.state().isRunningOrRebalancing() ? "blocks" : "leaves";
    }

    /** What keeps the application out of the JDK's inside, by the names of the exceptions. */
    private static String doors() {
        return door(() -> Class.forName("jdk.internal.misc.Unsafe").getMethod("getUnsafe").invoke(null)) + " "
                + door(() -> ClassLoader.class.getDeclaredMethod("defineClass", String.class, byte[].class, int.class, int.class, ProtectionDomain.class)
                        .setAccessible(true));
    }

    private static String door(Attempt attempt) {
        try {
            attempt.run();
            return "open";
        } catch (Exception e) {
            return e.getClass().getSimpleName();
        }
    }

    private interface Attempt {
        void run() throws Exception;
    }

    /** An instance whose metrics can be slow to read. */
    private static final class SlowStreams extends KafkaStreams {

        SlowStreams(Topology topology, Properties settings) {
            super(topology, settings);
        }

        @Override
        public Map<MetricName, ? extends Metric> metrics() {
            try {
                TimeUnit.MILLISECONDS.sleep(slow);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return super.metrics();
        }
    }
}
