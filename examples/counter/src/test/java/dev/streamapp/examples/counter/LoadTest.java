package dev.streamapp.examples.counter;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.streamapp.examples.counter.load.TopicsCommand;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.NewTopic;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class LoadTest {
    private final StringWriter printed = new StringWriter();

    private int execute(String... arguments) {
        return Load.commandLine().setErr(new PrintWriter(printed, true)).execute(arguments);
    }

    private String printed() {
        return printed.toString().replace(System.lineSeparator(), "\n");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "steady --rate fast | Invalid value for option '--rate': 'fast' is not a double",
                "steady --rate 0 | --rate 0.0 is not allowed; allowed: a number above 0",
                "steady --rate 500 --duration 10 | Invalid value for option '--duration': 10 is no duration; allowed: a whole number with a unit, for example 500ms, 30s, 10m or 2h",
                "steady | Missing required option: '--rate=N'",
                "preload --records 0 | Invalid value for option '--records': 0 is not allowed; allowed: a whole number from 1 to 2147483647",
                "preload --records 10 --keys 20 | --keys 20 is more than --records 10; some would not be written",
                "topics --topology tables | Invalid value for option '--topology': tables is no topology; allowed: counter, echo, stores, table",
                "preload --records 10 --topology tables | Invalid value for option '--topology': tables is no topology; allowed: counter, echo, stores, table",
                "steady --rate 500 --quiet one | Invalid value for option '--quiet' (N): 'one' is not an int",
                "topics --partitions none | Invalid value for option '--partitions': none is not allowed; allowed: a whole number from 1 to 2147483647",
            })
    void aWrongOptionEndsWithTwoAndOneLine(String options, String message) {
        int code = execute((options + " --bootstrap-servers 127.0.0.1:1").split(" "));
        assertEquals("load: " + message + " (try --help)\n", printed());
        assertEquals(2, code);
    }

    private static List<NewTopic> topics(String... options) {
        TopicsCommand command = new TopicsCommand();
        Load.commandLine(command).parseArgs(options);
        return command.wanted();
    }

    @ParameterizedTest
    @ValueSource(strings = {"counter", "stores"})
    void theShapesWithoutATableNeedTwoTopics(String shape) {
        List<String> names = topics("--bootstrap-servers", "a:1", "--topology", shape).stream()
                .map(NewTopic::name)
                .toList();
        assertEquals(List.of("counter-input", "counter-output"), names);
    }

    @Test
    void theTableIsACompactedTopicWithAsManyPartitionsAsTheInput() {
        List<NewTopic> topics = topics(
                "--bootstrap-servers", "a:1", "--topology", "table", "--table-topic", "rows", "--partitions", "4");
        NewTopic expected = new NewTopic("rows", 4, (short) 1)
                .configs(Map.of("cleanup.policy", "compact", "message.timestamp.type", "LogAppendTime"));
        assertEquals(3, topics.size());
        assertEquals(expected, topics.get(2));
        assertEquals(4, topics.get(0).numPartitions());
    }

    @Test
    void withoutBrokersNothingStarts() {
        int code = execute("topics");
        assertEquals("load: Missing required option: '--bootstrap-servers=HOST:PORT' (try --help)\n", printed());
        assertEquals(2, code);
    }

    @Test
    void withoutCommandNothingStarts() {
        int code = execute();
        assertEquals("load: Missing required subcommand (try --help)\n", printed());
        assertEquals(2, code);
    }

    @Test
    void aFileThatCannotBeReadEndsWithOneAndOneLine() {
        int code = execute("topics", "--bootstrap-servers", "127.0.0.1:1", "--command-config", "/nowhere");
        assertEquals(
                "load: --command-config /nowhere cannot be read (java.nio.file.NoSuchFileException: /nowhere)\n",
                printed());
        assertEquals(1, code);
    }
}
