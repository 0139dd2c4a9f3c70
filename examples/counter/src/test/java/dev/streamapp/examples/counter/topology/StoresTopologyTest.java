package dev.streamapp.examples.counter.topology;

import static dev.streamapp.examples.counter.topology.ShapeDriver.answer;
import static dev.streamapp.examples.counter.topology.ShapeDriver.bytes;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.test.TestRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class StoresTopologyTest {
    @TempDir
    private Path stateDirectory;

    private ShapeDriver driver(String guarantee) {
        return new ShapeDriver(StoresTopology.build("in", "out"), stateDirectory, guarantee);
    }

    @ParameterizedTest
    @ValueSource(strings = {"at_least_once", "exactly_once_v2"})
    void everyInputGivesOneOutputWithItsOwnKeyItsPlaceAndTheCountOfItsKey(String guarantee) {
        try (ShapeDriver driver = driver(guarantee)) {
            driver.pipe("in", "ab", "1");
            driver.pipe("in", "ba", "2");
            driver.pipe("in", "ab", "3");
            assertEquals(List.of(answer("ab", 0, 1), answer("ba", 1, 1), answer("ab", 2, 2)), driver.answers());
        }
    }

    @Test
    void recordsWithoutKeyOrValueAreCountedToo() {
        try (ShapeDriver driver = driver("at_least_once")) {
            driver.pipe("in", null, "1");
            driver.pipe("in", "", "2");
            driver.pipe("in", null, null);
            assertEquals(List.of(answer(null, 0, 1), answer("", 1, 2), answer(null, 2, 3)), driver.answers());
        }
    }

    @Test
    void theSecondSubTopologyCountsUnderTheTurnedKeyAndKeepsThePayload() {
        try (ShapeDriver driver = driver("at_least_once")) {
            driver.pipe("in", "ab", "first");
            driver.pipe("in", "ab", "last");
            KeyValueStore<Bytes, Tally> again = driver.driver.getKeyValueStore(StoresTopology.AGAIN);
            Tally tally = again.get(Bytes.wrap(bytes("ba")));
            assertEquals(2, tally.count());
            assertArrayEquals(bytes("last"), tally.payload());
        }
    }

    @Test
    void everyStoreHasItsChangelogAndTheRepartitionTopicTheTurnedKeys() {
        try (ShapeDriver driver = driver("at_least_once")) {
            driver.pipe("in", "ab", "1");
            assertEquals(
                    Set.of(
                            "out",
                            "counter-counts-changelog",
                            "counter-totals-changelog",
                            "counter-again-changelog",
                            "counter-turned-repartition"),
                    driver.driver.producedTopicNames());
            assertEquals(
                    "ba",
                    driver.driver
                            .createOutputTopic(
                                    "counter-turned-repartition", new StringDeserializer(), new ByteArrayDeserializer())
                            .readKeyValue()
                            .key);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "counts, at_least_once, 1", "totals, at_least_once, 1", "again, at_least_once, 1",
        "counts, exactly_once_v2, 0", "totals, exactly_once_v2, 0", "again, exactly_once_v2, 0",
    })
    void aStoreThatLostItsStateShowsInTheCount(String store, String guarantee, long count) {
        try (ShapeDriver driver = driver(guarantee)) {
            driver.pipe("in", "aa", "1");
            driver.driver.getKeyValueStore(store).delete(Bytes.wrap(bytes("aa")));
            driver.pipe("in", "aa", "2");
            assertEquals(List.of(answer("aa", 0, 1), answer("aa", 1, count)), driver.answers());
        }
    }

    @ParameterizedTest
    @CsvSource({
        "true, 4, 4, 4, 4", "false, 4, 4, 4, 4",
        "true, 5, 4, 4, 0", "true, 4, 5, 4, 0", "true, 4, 4, 5, 0", "true, 5, 5, 4, 0",
        "false, 5, 4, 6, 4", "false, 3, 4, 6, 3", "false, 5, 4, 3, 3",
    })
    void theAnswerIsWhatTheStoresAgreeOn(boolean exactlyOnce, long count, long total, long again, long agreed) {
        assertEquals(agreed, StoresTopology.agreed(exactlyOnce, count, total, again));
    }

    @Test
    void theOutputKeepsTheTimeAndHeadersOfItsInput() {
        RecordHeaders headers = new RecordHeaders();
        headers.add("trace", bytes("7"));
        try (ShapeDriver driver = driver("at_least_once")) {
            driver.driver
                    .createInputTopic("in", new StringSerializer(), new ByteArraySerializer())
                    .pipeInput(new TestRecord<>("ab", bytes("1"), headers, 1_234L));
            TestRecord<String, String> output = driver.driver
                    .createOutputTopic("out", new StringDeserializer(), new StringDeserializer())
                    .readRecord();
            assertEquals(
                    new TestRecord<>("ab", "{\"partition\":0,\"offset\":0,\"count\":1}", headers, 1_234L), output);
        }
    }
}
