package dev.streamapp.examples.counter;

import dev.streamapp.examples.counter.load.PreloadCommand;
import dev.streamapp.examples.counter.load.RemoveCommand;
import dev.streamapp.examples.counter.load.SteadyCommand;
import dev.streamapp.examples.counter.load.TopicsCommand;
import dev.streamapp.examples.counter.load.WaitsCommand;
import dev.streamapp.examples.counter.settings.Durations;
import java.time.Duration;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/**
 * The command line of the load generator, which writes the application's input.
 *
 * <p>Exit codes: 0 done, 1 failed, 2 wrong option. Every failure is one line on stderr.
 */
@Command(
        name = "load",
        description = "Creates the counter's topics, fills them, measures the application, and removes the topics.",
        mixinStandardHelpOptions = true,
        version = "counter 0.1.0",
        synopsisSubcommandLabel = "COMMAND",
        subcommands = {
            TopicsCommand.class,
            PreloadCommand.class,
            SteadyCommand.class,
            WaitsCommand.class,
            RemoveCommand.class
        })
public final class Load {
    private Load() {}

    /** Run one command and end with its exit code. */
    public static void main(String[] args) {
        // The command reports an unreachable broker once, at its end. The client would do so every second.
        System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "error");
        System.exit(commandLine().execute(args));
    }

    static CommandLine commandLine() {
        return commandLine(new Load());
    }

    /** Give the command line of one command, with the same converters and errors. */
    static CommandLine commandLine(Object command) {
        return new CommandLine(command)
                .registerConverter(Duration.class, text -> Durations.parse(text)
                        .orElseThrow(() -> new CommandLine.TypeConversionException(
                                text + " is no duration; allowed: " + Durations.ALLOWED)))
                .setParameterExceptionHandler((exception, args) -> {
                    CommandLine wrong = exception.getCommandLine();
                    wrong.getErr().println("load: " + exception.getMessage() + " (try --help)");
                    return wrong.getCommandSpec().exitCodeOnInvalidInput();
                })
                .setExecutionExceptionHandler((exception, failed, parsed) -> {
                    failed.getErr().println("load: " + exception.getMessage());
                    return failed.getCommandSpec().exitCodeOnExecutionException();
                });
    }
}
