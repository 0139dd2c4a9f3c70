package dev.streamapp.examples.counter.load;

import dev.streamapp.examples.counter.load.clients.Connection;
import dev.streamapp.examples.counter.load.clients.Sender;
import dev.streamapp.examples.counter.load.clients.Topics;
import dev.streamapp.examples.counter.load.records.Keys;
import dev.streamapp.examples.counter.load.records.LoadException;
import dev.streamapp.examples.counter.load.records.Payloads;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.producer.ProducerConfig;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/**
 * Fills the application's state: it writes each key once, as fast as the brokers accept it.
 *
 * <p>For {@code TOPOLOGY=table} it first writes each key as a row of the table.
 */
@Command(
        name = "preload",
        description = "Write each key once, as fast as the brokers take it.",
        mixinStandardHelpOptions = true)
public final class PreloadCommand implements Callable<Integer> {
    private static final Duration BETWEEN_LINES = Duration.ofSeconds(2);

    /** Large batches and a longer linger: the number of requests is the limit here, not the latency of a record. */
    private static final Map<String, Object> TUNING =
            Map.of(ProducerConfig.LINGER_MS_CONFIG, 20, ProducerConfig.BATCH_SIZE_CONFIG, 256 * 1024);

    @Mixin
    private Connection connection;

    @Mixin
    private InputOptions input;

    @Mixin
    private TableOptions table;

    @Option(
            names = "--records",
            paramLabel = "N",
            required = true,
            converter = PositiveInteger.class,
            description = "How many to write.")
    private int records;

    @Option(
            names = "--keys",
            paramLabel = "N",
            converter = PositiveInteger.class,
            description = "How many different keys; after the last comes the first again. Default: as many as records.")
    private Integer keys;

    @Option(names = "--seed", paramLabel = "N", defaultValue = "0", description = "Decides the values. Default: 0.")
    private long seed;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws LoadException, InterruptedException {
        int distinct = keys == null ? records : keys;
        if (distinct > records) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--keys " + distinct + " is more than --records " + records + "; some would not be written");
        }
        Payloads payloads = new Payloads(new SplittableRandom(seed), input.valueBytes);
        if (table.topic().isPresent()) {
            write("preload table", table.topic().get(), distinct, distinct, Set.of(), payloads);
        }
        write("preload", input.topic, records, distinct, input.quiet, payloads);
        return 0;
    }

    private void write(
            String what, String topic, int wanted, int distinct, Set<Integer> quiet, Payloads payloads)
            throws LoadException, InterruptedException {
        final int partitions;
        try (Topics topics = connection.topics()) {
            partitions = topics.partitions(topic);
        }
        Progress progress = new Progress(what, wanted);
        PrintWriter err = spec.commandLine().getErr();
        long start = System.nanoTime();
        long nextLine = BETWEEN_LINES.toNanos();
        long sent = 0;
        try (Sender sender = new Sender(connection.producer(TUNING), topic)) {
            for (int number = 0; number < wanted; number++) {
                byte[] key = Keys.key(number % distinct);
                int partition = Keys.partition(key, partitions);
                if (!quiet.contains(partition)) {
                    sender.send(partition, key, payloads.next());
                    sent++;
                }
                long elapsed = System.nanoTime() - start;
                if (elapsed >= nextLine) {
                    err.println(progress.line(number + 1L, Duration.ofNanos(elapsed)));
                    nextLine += BETWEEN_LINES.toNanos();
                }
            }
            sender.flush();
        }
        Duration taken = Duration.ofNanos(System.nanoTime() - start);
        spec.commandLine().getOut().println(Progress.sum(what, sent, taken));
    }
}
