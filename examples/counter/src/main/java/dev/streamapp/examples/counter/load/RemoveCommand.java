package dev.streamapp.examples.counter.load;

import dev.streamapp.examples.counter.load.clients.Connection;
import dev.streamapp.examples.counter.load.clients.Topics;
import dev.streamapp.examples.counter.load.records.LoadException;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Deletes what one deployment left at the brokers; safe to run again. The application must have stopped. */
@Command(
        name = "remove",
        description = "Delete the input, the output, the application's internal topics, and its group.",
        mixinStandardHelpOptions = true)
public final class RemoveCommand implements Callable<Integer> {
    @Mixin
    private Connection connection;

    @Option(
            names = "--application-id",
            paramLabel = "ID",
            defaultValue = "${env:APPLICATION_ID}",
            required = true,
            description = "Default: APPLICATION_ID.")
    private String applicationId;

    @Option(
            names = "--input-topic",
            paramLabel = "TOPIC",
            defaultValue = "${env:INPUT_TOPIC}",
            required = true,
            description = "Default: INPUT_TOPIC.")
    private String inputTopic;

    @Option(
            names = "--output-topic",
            paramLabel = "TOPIC",
            defaultValue = "${env:OUTPUT_TOPIC}",
            required = true,
            description = "Default: OUTPUT_TOPIC.")
    private String outputTopic;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws LoadException, InterruptedException {
        try (Topics topics = connection.topics()) {
            List<String> gone = topics.remove(name -> isOwn(name, applicationId, inputTopic, outputTopic));
            topics.removeGroup(applicationId);
            spec.commandLine().getOut().println("remove: " + gone.size() + " topics: " + String.join(", ", gone));
        }
        return 0;
    }

    /** Tell whether a topic is the input, the output, or one that Kafka Streams made for this application. */
    static boolean isOwn(String name, String applicationId, String inputTopic, String outputTopic) {
        boolean isInternal = name.startsWith(applicationId + "-")
                && (name.endsWith("-changelog") || name.endsWith("-repartition"));
        return isInternal || name.equals(inputTopic) || name.equals(outputTopic);
    }
}
