package dev.streamapp.examples.counter.load;

import dev.streamapp.examples.counter.load.clients.Connection;
import dev.streamapp.examples.counter.load.clients.Topics;
import dev.streamapp.examples.counter.load.records.LoadException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.config.TopicConfig;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Creates the topics of the counter; safe to run again and by several at once. */
@Command(
        name = "topics",
        description = "Create the input, the output and, for TOPOLOGY=table, the table topic; topics that are there with the"
                + " right partitions are fine.",
        mixinStandardHelpOptions = true)
public final class TopicsCommand implements Callable<Integer> {
    /**
     * A measurement wants to know when a record reached the broker. The producer's own time says when the input was
     * sent, and Kafka Streams gives an output the time of its input.
     */
    private static final Map<String, String> APPEND_TIMES =
            Map.of(TopicConfig.MESSAGE_TIMESTAMP_TYPE_CONFIG, "LogAppendTime");

    /**
     * Each key's last row for as long as it has one. Append times here too: tasks read the older record first, so what
     * was written to the table before the input is known when the input comes.
     */
    private static final Map<String, String> COMPACTED = Map.of(
            TopicConfig.MESSAGE_TIMESTAMP_TYPE_CONFIG, "LogAppendTime",
            TopicConfig.CLEANUP_POLICY_CONFIG, TopicConfig.CLEANUP_POLICY_COMPACT);

    @Mixin
    private Connection connection;

    @Mixin
    private TopicOptions topics;

    @Mixin
    private TableOptions table;

    @Option(
            names = "--partitions",
            paramLabel = "N",
            defaultValue = "6",
            converter = PositiveInteger.class,
            description = "Default: 6.")
    private int partitions;

    @Option(names = "--replication-factor", paramLabel = "N", defaultValue = "1", description = "Default: 1.")
    private short replicationFactor;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws LoadException, InterruptedException {
        PrintWriter out = spec.commandLine().getOut();
        try (Topics brokers = connection.topics()) {
            for (NewTopic topic : wanted()) {
                String verb = brokers.ensure(topic) ? "created" : "was there";
                out.println("topics: " + topic.name() + " " + verb + ", " + partitions + " partitions");
            }
        }
        return 0;
    }

    /** Give the topics, all with as many partitions: the table is read by the tasks that read the input. */
    public List<NewTopic> wanted() {
        List<NewTopic> all = new ArrayList<>();
        all.add(new NewTopic(topics.input, partitions, replicationFactor).configs(APPEND_TIMES));
        all.add(new NewTopic(topics.output, partitions, replicationFactor).configs(APPEND_TIMES));
        table.topic().ifPresent(
                name -> all.add(new NewTopic(name, partitions, replicationFactor).configs(COMPACTED)));
        return all;
    }
}
