package dev.streamapp.examples.counter;

import dev.streamapp.examples.counter.settings.InvalidSettingException;
import dev.streamapp.examples.counter.settings.Settings;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The application: it counts records per key until SIGTERM, or prints its topology.
 *
 * <p>Exit codes: 2 for a wrong setting, 1 if a stream thread failed or the application could not start. After a SIGTERM
 * it is the JVM's own 143, once the application has closed.
 */
public final class Counter {
    private static final Logger LOG = LoggerFactory.getLogger(Counter.class);

    private static final String DESCRIBE = "describe";
    private static final String WRITABLE = "a directory that this user may write";

    private Counter() {}

    /**
     * Run until SIGTERM or a failure; with the argument {@code describe} only print {@code Topology#describe()}.
     *
     * <p>The configuration is in the environment, for both.
     */
    public static void main(String[] args) {
        System.exit(run(List.of(args), System.getenv(), System.out, System.err));
    }

    /** Give the exit code; does not return while the application runs. */
    static int run(List<String> arguments, Map<String, String> environment, PrintStream out, PrintStream err) {
        try {
            if (arguments.equals(List.of(DESCRIBE))) {
                out.println(describe(environment));
                return 0;
            }
            if (!arguments.isEmpty()) {
                throw new InvalidSettingException("arguments", String.join(" ", arguments), DESCRIBE + ", or none");
            }
            Settings settings = Settings.from(environment);
            settings.warnings().forEach(line -> err.println("counter: warning: " + line));
            ensureWritable(settings.streams().get(StreamsConfig.STATE_DIR_CONFIG).toString());
            return count(settings);
        } catch (InvalidSettingException e) {
            err.println("counter: " + e.getMessage());
            return InvalidSettingException.EXIT_CODE;
        } catch (KafkaException | IllegalArgumentException e) {
            Throwable root = root(e);
            err.println("counter: cannot start: " + root.getMessage());
            boolean setting = root instanceof ConfigException || root instanceof IllegalArgumentException;
            return setting ? InvalidSettingException.EXIT_CODE : 1;
        }
    }

    /** Give the text of the topology that these settings make. It needs no broker, so none has to be named. */
    private static String describe(Map<String, String> environment) throws InvalidSettingException {
        Map<String, String> complete = new HashMap<>(environment);
        complete.merge("BOOTSTRAP_SERVERS", "unused:1", (named, unused) -> named.isBlank() ? unused : named);
        Settings settings = Settings.from(complete);
        return settings.topology().describe().toString().strip();
    }

    private static int count(Settings settings) {
        Properties properties = new Properties();
        properties.putAll(settings.streams());
        CompletableFuture<Throwable> failure = new CompletableFuture<>();
        // Not in a try-with-resources: the hook below closes it, in every way in which this process can end.
        KafkaStreams streams = new KafkaStreams(settings.topology(), properties);
        streams.setStateListener((now, before) -> LOG.info("{}", now));
        streams.setUncaughtExceptionHandler(exception -> {
            failure.complete(exception);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(streams, settings), "close"));
        streams.start();
        LOG.error("stopping, a stream thread failed: {}", root(failure.join()).toString());
        return 1;
    }

    private static void close(KafkaStreams streams, Settings settings) {
        long start = System.nanoTime();
        // Options only if needed: the jar then also runs on a Kafka Streams without their class.
        boolean closed = settings.leaveOnClose()
                ? streams.close(settings.closeOptions())
                : streams.close(settings.closeTimeout());
        Duration taken = Duration.ofNanos(System.nanoTime() - start);
        if (closed) {
            LOG.info("closed in {} ms, leave on close: {}", taken.toMillis(), settings.leaveOnClose());
        } else {
            LOG.warn("not closed after {} ms; CLOSE_TIMEOUT ends the wait", taken.toMillis());
        }
    }

    private static void ensureWritable(String stateDirectory) throws InvalidSettingException {
        Path path = Path.of(stateDirectory);
        try {
            Files.createDirectories(path);
        } catch (IOException e) {
            throw new InvalidSettingException("STATE_DIR", path + " cannot be created (" + e + ")", WRITABLE);
        }
        if (!Files.isWritable(path)) {
            throw new InvalidSettingException("STATE_DIR", path + " cannot be written", WRITABLE);
        }
    }

    private static Throwable root(Throwable exception) {
        Throwable root = exception;
        while (root.getCause() != null) {
            root = root.getCause();
        }
        return root;
    }
}
