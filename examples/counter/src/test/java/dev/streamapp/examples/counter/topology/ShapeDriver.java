package dev.streamapp.examples.counter.topology;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;

/** Runs a topology of topics {@code in}, {@code table} and {@code out} in memory. */
final class ShapeDriver implements AutoCloseable {
    final TopologyTestDriver driver;

    ShapeDriver(Topology topology, Path stateDirectory, String guarantee) {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "counter");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "127.0.0.1:1");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, stateDirectory.toString());
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        driver = new TopologyTestDriver(topology, properties);
    }

    void pipe(String topic, String key, String value) {
        TestInputTopic<String, byte[]> input =
                driver.createInputTopic(topic, new StringSerializer(), new ByteArraySerializer());
        input.pipeInput(key, value == null ? null : bytes(value));
    }

    List<KeyValue<String, String>> answers() {
        return driver.createOutputTopic("out", new StringDeserializer(), new StringDeserializer())
                .readKeyValuesToList();
    }

    static KeyValue<String, String> answer(String key, long offset, long count) {
        return new KeyValue<>(key, "{\"partition\":0,\"offset\":" + offset + ",\"count\":" + count + "}");
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public void close() {
        driver.close();
    }
}
