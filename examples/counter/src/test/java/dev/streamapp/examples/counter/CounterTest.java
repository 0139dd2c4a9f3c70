package dev.streamapp.examples.counter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.streamapp.examples.counter.topology.Shape;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class CounterTest {
    private final ByteArrayOutputStream printed = new ByteArrayOutputStream();

    private int run(Map<String, String> environment, String... arguments) {
        PrintStream stream = new PrintStream(printed, true, StandardCharsets.UTF_8);
        return Counter.run(List.of(arguments), environment, stream, stream);
    }

    private String printed() {
        return printed.toString(StandardCharsets.UTF_8).replace(System.lineSeparator(), "\n");
    }

    @Test
    void aWrongSettingEndsWithTwoAndOneLine() {
        assertEquals(2, run(Map.of()));
        assertEquals("counter: BOOTSTRAP_SERVERS: not set; allowed: host:port, several with commas between\n", printed());
    }

    @Test
    void anArgumentThatIsNoneEndsWithTwoAndOneLine() {
        assertEquals(2, run(Map.of("BOOTSTRAP_SERVERS", "127.0.0.1:1"), "describe", "all"));
        assertEquals("counter: arguments: describe all; allowed: describe, or none\n", printed());
    }

    @ParameterizedTest
    @EnumSource(Shape.class)
    void theTopologyIsDescribedWithoutABroker(Shape shape) {
        assertEquals(0, run(Map.of("TOPOLOGY", shape.toString(), "INPUT_TOPIC", "in"), "describe"));
        String text = printed();
        assertTrue(text.startsWith("Topologies:\n   Sub-topology: 0\n"), text);
        assertTrue(text.contains("(topics: [in])"), text);
    }

    @Test
    void aWrongSettingIsNotDescribed() {
        assertEquals(2, run(Map.of("TOPOLOGY", "tables"), "describe"));
        assertEquals("counter: TOPOLOGY: tables is no topology; allowed: counter, echo, stores, table\n", printed());
    }

    @Test
    void aStateDirectoryThatIsAFileEndsWithTwoAndOneLine(@TempDir Path directory) throws IOException {
        Path file = Files.createFile(directory.resolve("file"));
        assertEquals(2, run(Map.of("BOOTSTRAP_SERVERS", "127.0.0.1:1", "STATE_DIR", file.toString())));
        assertEquals(
                "counter: STATE_DIR: " + file + " cannot be created (java.nio.file.FileAlreadyExistsException: " + file
                        + "); allowed: a directory that this user may write\n",
                printed());
    }

    @Test
    void settingsThatDoNotFitTogetherEndWithTwoAndOneLine(@TempDir Path directory) {
        Map<String, String> environment = Map.of(
                "BOOTSTRAP_SERVERS", "127.0.0.1:1",
                "STATE_DIR", directory.toString(),
                "STREAMS_SESSION_TIMEOUT_MS", "6000",
                "STREAMS_HEARTBEAT_INTERVAL_MS", "7000");
        assertEquals(2, run(environment));
        assertEquals("counter: cannot start: Heartbeat must be set lower than the session timeout\n", printed());
    }
}
