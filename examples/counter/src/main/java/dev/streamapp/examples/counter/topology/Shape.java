package dev.streamapp.examples.counter.topology;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.kafka.streams.Topology;

/** The shapes of the topology. The shape changes the tasks of the application, not its output. */
public enum Shape {
    /** One sub-topology with one store. */
    COUNTER {
        @Override
        public Topology build(String inputTopic, String tableTopic, String outputTopic) {
            return CounterTopology.build(inputTopic, outputTopic);
        }
    },
    /** The same, and a second sub-topology that counts the output: a new version of {@link #COUNTER}. */
    ECHO {
        @Override
        public Topology build(String inputTopic, String tableTopic, String outputTopic) {
            return EchoTopology.build(inputTopic, outputTopic);
        }
    },
    /** Two stores, a repartition topic, and a second sub-topology with a store of its own. */
    STORES {
        @Override
        public Topology build(String inputTopic, String tableTopic, String outputTopic) {
            return StoresTopology.build(inputTopic, outputTopic);
        }
    },
    /** A table that is restored from the topic it is read from, beside a store with a changelog. */
    TABLE {
        @Override
        public Topology build(String inputTopic, String tableTopic, String outputTopic) {
            return TableTopology.build(inputTopic, tableTopic, outputTopic);
        }
    };

    /** What is allowed, for an error. */
    public static final String ALLOWED =
            Arrays.stream(values()).map(Shape::toString).sorted().collect(Collectors.joining(", "));

    /** Build the topology with these topics; only {@link #TABLE} reads the table topic. */
    public abstract Topology build(String inputTopic, String tableTopic, String outputTopic);

    /** Read a shape's name; an empty text is {@link #COUNTER}, as an empty variable is one that is not set. */
    public static Optional<Shape> parse(String text) {
        String name = text.strip();
        return name.isEmpty()
                ? Optional.of(COUNTER)
                : Arrays.stream(values()).filter(shape -> shape.toString().equals(name)).findAny();
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
