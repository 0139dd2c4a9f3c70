package dev.streamapp.examples.counter.load;

import dev.streamapp.examples.counter.topology.Shape;
import java.util.Optional;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

/** The options for the shape of the topology and for the topic of its table. */
final class TableOptions {
    @Option(
            names = "--topology",
            paramLabel = "SHAPE",
            defaultValue = "${env:TOPOLOGY:-counter}",
            converter = ToShape.class,
            description = "The application's shape: counter, echo, stores or table. Default: TOPOLOGY, else counter.")
    private Shape shape;

    @Option(
            names = "--table-topic",
            paramLabel = "TOPIC",
            defaultValue = "${env:TABLE_TOPIC:-counter-table}",
            description = "Default: TABLE_TOPIC, else counter-table.")
    private String topic;

    /** Give the topic of the table, where the shape has one. */
    Optional<String> topic() {
        return shape == Shape.TABLE ? Optional.of(topic) : Optional.empty();
    }

    private static final class ToShape implements ITypeConverter<Shape> {
        @Override
        public Shape convert(String text) {
            return Shape.parse(text)
                    .orElseThrow(() -> new TypeConversionException(
                            text + " is no topology; allowed: " + Shape.ALLOWED));
        }
    }
}
