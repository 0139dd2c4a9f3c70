package dev.streamapp.examples.counter.topology;

import static dev.streamapp.examples.counter.topology.ShapeDriver.answer;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription.Subtopology;
import org.apache.kafka.streams.state.KeyValueStore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EchoTopologyTest {
    @TempDir
    private Path stateDirectory;

    @Test
    void theOutputIsThatOfTheCounterAndIsCountedOnceMore() {
        Topology topology = EchoTopology.build("in", "out");
        try (ShapeDriver driver = new ShapeDriver(topology, stateDirectory, "at_least_once")) {
            driver.pipe("in", "a", "1");
            driver.pipe("in", "b", "2");
            driver.pipe("in", "a", "3");
            assertEquals(List.of(answer("a", 0, 1), answer("b", 1, 1), answer("a", 2, 2)), driver.answers());
            KeyValueStore<Bytes, Long> echoes = driver.driver.getKeyValueStore(EchoTopology.STORE);
            assertEquals(2L, echoes.get(Bytes.wrap(ShapeDriver.bytes("a"))));
        }
    }

    @Test
    void theFirstSubtopologyIsThatOfTheCounter() {
        assertEquals(subtopology(CounterTopology.build("in", "out"), 0), subtopology(EchoTopology.build("in", "out"), 0));
        assertEquals(2, EchoTopology.build("in", "out").describe().subtopologies().size());
    }

    private static String subtopology(Topology topology, int id) {
        return topology.describe().subtopologies().stream()
                .filter(each -> each.id() == id)
                .map(Subtopology::toString)
                .collect(Collectors.joining());
    }
}
