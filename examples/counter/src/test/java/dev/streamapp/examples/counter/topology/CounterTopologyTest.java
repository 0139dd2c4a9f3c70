package dev.streamapp.examples.counter.topology;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.BytesDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.test.TestRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CounterTopologyTest {
    @TempDir
    private Path stateDirectory;

    private TopologyTestDriver driver() {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "counter");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "127.0.0.1:1");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, stateDirectory.toString());
        return new TopologyTestDriver(CounterTopology.build("in", "out"), properties);
    }

    private static TestInputTopic<String, byte[]> input(TopologyTestDriver driver) {
        return driver.createInputTopic("in", new StringSerializer(), new ByteArraySerializer());
    }

    private static List<KeyValue<String, String>> output(TopologyTestDriver driver) {
        return driver.createOutputTopic("out", new StringDeserializer(), new StringDeserializer()).readKeyValuesToList();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    @Test
    void everyInputGivesOneOutputWithItsPlaceAndTheCountOfItsKey() {
        try (TopologyTestDriver driver = driver()) {
            TestInputTopic<String, byte[]> input = input(driver);
            input.pipeInput("a", bytes("1"));
            input.pipeInput("b", bytes("2"));
            input.pipeInput("a", bytes("3"));
            assertEquals(
                    List.of(
                            KeyValue.pair("a", "{\"partition\":0,\"offset\":0,\"count\":1}"),
                            KeyValue.pair("b", "{\"partition\":0,\"offset\":1,\"count\":1}"),
                            KeyValue.pair("a", "{\"partition\":0,\"offset\":2,\"count\":2}")),
                    output(driver));
        }
    }

    @Test
    void theStoreKeepsTheCountAndTheLastPayload() {
        try (TopologyTestDriver driver = driver()) {
            input(driver).pipeInput("a", bytes("first"));
            input(driver).pipeInput("a", bytes("last"));
            KeyValueStore<Bytes, Tally> counts = driver.getKeyValueStore(CounterTopology.STORE);
            Tally tally = counts.get(Bytes.wrap(bytes("a")));
            assertEquals(2, tally.count());
            assertArrayEquals(bytes("last"), tally.payload());
        }
    }

    @Test
    void aRestartThatReplaysTheChangelogGoesOnCounting() {
        final Map<Bytes, byte[]> changelog;
        try (TopologyTestDriver driver = driver()) {
            input(driver).pipeInput("a", bytes("1"));
            input(driver).pipeInput("b", bytes("2"));
            input(driver).pipeInput("a", bytes("3"));
            changelog = driver.createOutputTopic(
                            "counter-counts-changelog", new BytesDeserializer(), (topic, value) -> value)
                    .readKeyValuesToMap();
        }
        try (TopologyTestDriver driver = driver()) {
            KeyValueStore<Bytes, Tally> counts = driver.getKeyValueStore(CounterTopology.STORE);
            changelog.forEach((key, value) -> counts.put(key, Tally.serde().deserializer().deserialize("", value)));
            input(driver).pipeInput("a", bytes("4"));
            assertEquals(
                    List.of(KeyValue.pair("a", "{\"partition\":0,\"offset\":0,\"count\":3}")), output(driver));
        }
    }

    @Test
    void recordsWithoutKeyOrValueAreCountedToo() {
        try (TopologyTestDriver driver = driver()) {
            TestInputTopic<String, byte[]> input = input(driver);
            input.pipeInput((String) null, bytes("1"));
            input.pipeInput((String) null, (byte[]) null);
            assertEquals(
                    List.of(
                            new KeyValue<>(null, "{\"partition\":0,\"offset\":0,\"count\":1}"),
                            new KeyValue<>(null, "{\"partition\":0,\"offset\":1,\"count\":2}")),
                    output(driver));
        }
    }

    @Test
    void theOutputKeepsTheTimeAndHeadersOfItsInput() {
        RecordHeaders headers = new RecordHeaders();
        headers.add("trace", bytes("7"));
        try (TopologyTestDriver driver = driver()) {
            input(driver).pipeInput(new TestRecord<>("a", bytes("1"), headers, 1_234L));
            TestRecord<String, String> output = driver.createOutputTopic(
                            "out", new StringDeserializer(), new StringDeserializer())
                    .readRecord();
            assertEquals(
                    new TestRecord<>("a", "{\"partition\":0,\"offset\":0,\"count\":1}", headers, 1_234L), output);
        }
    }
}
