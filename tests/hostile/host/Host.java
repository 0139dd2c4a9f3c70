import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Materialized;

/**
 * An application that has no broker. It says what it does on both outputs, obeys the words on its standard input, and exits with 7.
 *
 * <p>Arguments are settings, each {@code name=value}.
 */
public final class Host {

    private Host() {
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "host");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "127.0.0.1:1");
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        for (String argument : arguments) {
            int at = argument.indexOf('=');
            settings.put(argument.substring(0, at), argument.substring(at + 1));
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("input").groupByKey().count(Materialized.as("counts"));
        System.err.println("begins");
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
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

    private static String obey(String word, KafkaStreams streams) throws Exception {
        switch (word) {
            case "start":
                streams.start();
                return streams.state().toString();
            case "clean":
                streams.cleanUp();
                return "done";
            default:
                return "unknown";
        }
    }
}
