package dev.streamapp.examples.launchers.quarkus;

import dev.streamapp.examples.launchers.counting.Counting;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.inject.Produces;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.eclipse.microprofile.config.inject.ConfigProperty;

/** The counting application; Quarkus' extension starts what this produces. */
@ApplicationScoped
public class Application {
    private final String inputTopic;
    private final String outputTopic;

    /** Take the names of the topics from the environment. */
    public Application(
            @ConfigProperty(name = "INPUT_TOPIC") String inputTopic,
            @ConfigProperty(name = "OUTPUT_TOPIC") String outputTopic) {
        this.inputTopic = inputTopic;
        this.outputTopic = outputTopic;
    }

    /** Give the topology. */
    @Produces
    public Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        Counting.define(builder, inputTopic, outputTopic);
        return builder.build();
    }
}
