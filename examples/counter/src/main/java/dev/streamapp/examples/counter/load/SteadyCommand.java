package dev.streamapp.examples.counter.load;

import dev.streamapp.examples.counter.load.clients.Connection;
import dev.streamapp.examples.counter.load.clients.Sender;
import dev.streamapp.examples.counter.load.clients.Topics;
import dev.streamapp.examples.counter.load.records.LoadException;
import dev.streamapp.examples.counter.load.records.Pace;
import dev.streamapp.examples.counter.load.records.Payloads;
import dev.streamapp.examples.counter.load.records.RecordSequence;
import java.time.Duration;
import java.util.Map;
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
 * Writes evenly paced records to every partition in turn, so that a silent partition shows at once.
 *
 * <p>For {@code TOPOLOGY=table} some keys also get a new row on the way, so that the table keeps changing.
 */
@Command(
        name = "steady",
        description = "Write records evenly paced, partition after partition, until SIGTERM or for a given time.",
        mixinStandardHelpOptions = true)
public final class SteadyCommand implements Callable<Integer> {
    /** A short linger, which bounds the producer's own share of a measured gap. */
    private static final Map<String, Object> TUNING = Map.of(ProducerConfig.LINGER_MS_CONFIG, 5);

    @Mixin
    private Connection connection;

    @Mixin
    private InputOptions input;

    @Mixin
    private TableOptions table;

    @Option(
            names = "--row-every",
            paramLabel = "N",
            defaultValue = "10",
            converter = PositiveInteger.class,
            description = "With a table: every Nth key gets a new row too, besides its record. Default: 10.")
    private int rowEvery;

    @Option(names = "--rate", paramLabel = "N", required = true, description = "Records per second over all partitions.")
    private double rate;

    @Option(
            names = "--keys",
            paramLabel = "N",
            defaultValue = "1000000",
            converter = PositiveInteger.class,
            description = "Draw from the first N keys, those that preload wrote. Default: 1000000.")
    private int keys;

    @Option(names = "--duration", paramLabel = "TIME", description = "For example 10m. Default: until SIGTERM.")
    private Duration duration;

    @Option(names = "--seed", paramLabel = "N", defaultValue = "0", description = "Decides keys and values. Default: 0.")
    private long seed;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws LoadException, InterruptedException {
        if (!(rate > 0 && Double.isFinite(rate))) {
            throw new ParameterException(
                    spec.commandLine(), "--rate " + rate + " is not allowed; allowed: a number above 0");
        }
        SplittableRandom random = new SplittableRandom(seed);
        final RecordSequence sequence;
        try (Topics topics = connection.topics()) {
            sequence = new RecordSequence(keys, topics.partitions(input.topic), input.quiet, random.split());
        }
        try (StopSignal signal = StopSignal.listen();
                Sender sender = new Sender(connection.producer(TUNING), input.topic);
                Sender rows = table.topic().isPresent()
                        ? new Sender(connection.producer(TUNING), table.topic().get())
                        : null) {
            write(sender, rows, sequence, new Payloads(random.split(), input.valueBytes), signal);
            signal.finished();
        }
        return 0;
    }

    /** Write until the stop signal; {@code rows} is null without a table. */
    private void write(Sender sender, Sender rows, RecordSequence sequence, Payloads payloads, StopSignal signal)
            throws LoadException, InterruptedException {
        Pace pace = new Pace(rate);
        long wanted = duration == null ? Long.MAX_VALUE : pace.within(duration);
        long start = System.nanoTime();
        long sent = 0;
        while (sent < wanted && !signal.cameWithin(pace.due(sent) - (System.nanoTime() - start))) {
            RecordSequence.Next next = sequence.next();
            sender.send(next.partition(), next.key(), payloads.next());
            if (rows != null && sent % rowEvery == 0) {
                rows.send(next.partition(), next.key(), payloads.next());
            }
            sent++;
        }
        sender.flush();
        if (rows != null) {
            rows.flush();
        }
        Duration taken = Duration.ofNanos(System.nanoTime() - start);
        spec.commandLine().getOut().println(Progress.sum("steady", sent, taken));
    }
}
