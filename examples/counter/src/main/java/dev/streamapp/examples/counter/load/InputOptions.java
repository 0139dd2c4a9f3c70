package dev.streamapp.examples.counter.load;

import java.util.Set;
import picocli.CommandLine.Option;

/** The options that both writing commands share: topic, size and silent partitions. */
final class InputOptions {
    @Option(
            names = "--topic",
            paramLabel = "TOPIC",
            defaultValue = "${env:INPUT_TOPIC:-counter-input}",
            description = "Where to write. Default: INPUT_TOPIC, else counter-input.")
    String topic;

    @Option(
            names = "--value-bytes",
            paramLabel = "N",
            defaultValue = "190",
            converter = PositiveInteger.class,
            description = "Size of a value. Default: 190.")
    int valueBytes;

    @Option(
            names = "--quiet",
            paramLabel = "N",
            split = ",",
            description = "Partitions of the input that get no record, several with commas between. Default: none.")
    Set<Integer> quiet = Set.of();
}
