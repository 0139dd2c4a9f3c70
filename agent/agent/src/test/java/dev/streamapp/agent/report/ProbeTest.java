package dev.streamapp.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.streamapp.agent.config.InstanceConfig;
import dev.streamapp.agent.instance.Instance;
import dev.streamapp.agent.kafka.StateDirectory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProbeTest {

    /** A KafkaStreams object that has three tasks by its metrics. */
    private static final class FakeStreams extends KafkaStreams {

        private FakeStreams(Path folder) {
            super(topology(), settings(folder));
        }

        private static Topology topology() {
            StreamsBuilder builder = new StreamsBuilder();
            builder.stream("input");
            return builder.build();
        }

        private static Properties settings(Path folder) {
            Properties settings = new Properties();
            settings.putAll(Map.of(StreamsConfig.APPLICATION_ID_CONFIG, "app", StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "127.0.0.1:1",
                                   StreamsConfig.STATE_DIR_CONFIG, folder.toString()));
            return settings;
        }

        @Override
        public Map<MetricName, ? extends Metric> metrics() {
            Map<MetricName, Metric> metrics = new HashMap<>();
            Map.of("0_1", "process-total", "0_2", "update-total", "0_3", "process-total")
                    .forEach((task, name) -> metrics.put(new MetricName(name, "stream-task-metrics", "", Map.of("task-id", task)), null));
            return metrics;
        }
    }

    @Test
    void eachTaskSaysWhatItsDirectoryTakes(@TempDir Path folder) throws IOException {
        Map<String, Integer> sizes = Map.of("0_1", 90, "0_2", 1, "0_7", 5);
        for (Map.Entry<String, Integer> size : sizes.entrySet()) {
            Files.write(Files.createDirectories(folder.resolve("state").resolve(size.getKey())).resolve("000012.sst"), new byte[size.getValue()]);
        }
        InstanceConfig configuration = new InstanceConfig("app", new JsonObject(), List.of(), new StateDirectory(folder.resolve("state")));
        try (FakeStreams streams = new FakeStreams(folder)) {
            JsonObject json = Probe.of(1, System.nanoTime(), List.of(new Instance(streams, configuration))).instances().get(0).getAsJsonObject();
            Map<String, String> said = new HashMap<>();
            for (JsonElement task : json.getAsJsonArray("tasks")) {
                said.put(task.getAsJsonObject().get("id").getAsString(), String.valueOf(task.getAsJsonObject().get("stateBytes")));
            }
            assertEquals(Map.of("0_1", "90", "0_2", "1", "0_3", "null"), said);
            assertEquals(96, json.get("stateBytes").getAsLong(), "a task that is gone counts in the whole");
        }
    }
}
