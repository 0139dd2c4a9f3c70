package dev.streamapp.examples.counter.load;

import picocli.CommandLine.Option;

/** The options that name the two topics of the application. */
final class TopicOptions {
    @Option(
            names = "--input-topic",
            paramLabel = "TOPIC",
            defaultValue = "${env:INPUT_TOPIC:-counter-input}",
            description = "Default: INPUT_TOPIC, else counter-input.")
    String input;

    @Option(
            names = "--output-topic",
            paramLabel = "TOPIC",
            defaultValue = "${env:OUTPUT_TOPIC:-counter-output}",
            description = "Default: OUTPUT_TOPIC, else counter-output.")
    String output;
}
