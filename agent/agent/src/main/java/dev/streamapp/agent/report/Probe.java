package dev.streamapp.agent.report;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import dev.streamapp.agent.instance.Instance;
import dev.streamapp.agent.instance.TaskMetrics;
import dev.streamapp.agent.kafka.KafkaApi;
import dev.streamapp.agent.kafka.Limitation;
import dev.streamapp.agent.runtime.WarningLog;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * One probe of the instances, in the JSON form of the report. The report adds the values that change between probes.
 *
 * @param sequence the number of the probe
 * @param beganAt the start of the probe, by System.nanoTime
 * @param instances the report's {@code instances}, without {@code lastRound}
 */
public record Probe(long sequence, long beganAt, JsonArray instances) {

    static final int MAX_TOPOLOGY_BYTES = 256 * 1024;

    static Probe of(long sequence, long beganAt, List<Instance> instances) {
        JsonArray array = new JsonArray();
        for (Instance instance : instances) {
            Object streams = instance.streams();
            if (streams != null) {
                JsonObject json = probeInstance(instance, streams);
                if (json != null) {
                    array.add(json);
                }
            }
        }
        return new Probe(sequence, beganAt, array);
    }

    /** Returns null if the state of the instance is unreadable: the report then omits it. */
    private static JsonObject probeInstance(Instance instance, Object streams) {
        KafkaApi kafka = new KafkaApi(KafkaApi.loaderOf(streams, KafkaApi.STREAMS));
        List<Limitation> limitations = new ArrayList<>(instance.configuration().limitations());
        JsonObject json = instance.configuration().json().deepCopy();
        json.addProperty("applicationId", instance.configuration().applicationId());
        String state;
        try {
            state = instance.state(kafka);
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            WarningLog.warn("the state of an instance cannot be read: " + KafkaApi.reason(e));
            return null;
        }
        json.addProperty("clientState", state);
        List<TaskMetrics.Task> tasks = tasks(instance, kafka, streams, limitations);
        addThreads(json, instance, kafka, streams);
        addIdentity(json, instance, limitations);
        Map<String, Long> taskBytes = instance.configuration().state().addTo(json);
        if (instance.cleanedTasks() > 0) {
            json.addProperty("cleanedTasks", instance.cleanedTasks());
        }
        if (tasks != null) {
            Map<String, List<KafkaApi.Position>> positions = positions(instance, tasks, kafka, streams, state, limitations);
            JsonArray array = new JsonArray();
            tasks.forEach(task -> array.add(json(task, taskBytes.get(task.id()), positions.getOrDefault(task.id(), List.of()))));
            json.add("tasks", array);
        }
        JsonArray all = new JsonArray();
        limitations.forEach(limitation -> all.add(limitation.json()));
        json.add("asides", all);
        return json;
    }

    private static void addThreads(JsonObject json, Instance instance, KafkaApi kafka, Object streams) {
        try {
            JsonArray threads = new JsonArray();
            kafka.threads(streams).forEach((name, state) -> {
                JsonObject thread = new JsonObject();
                thread.addProperty("name", name);
                thread.addProperty("state", instance.threadStates().getOrDefault(name, state));
                threads.add(thread);
            });
            json.add("threads", threads);
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            WarningLog.warn("the threads of an instance cannot be read: " + KafkaApi.reason(e));
        }
    }

    private static void addIdentity(JsonObject json, Instance instance, List<Limitation> limitations) {
        if (instance.processId() == null) {
            limitations.add(new Limitation("processId", "neither a metric nor KafkaStreams tells it", Limitation.Kind.Failed));
        } else {
            json.addProperty("processId", instance.processId());
        }
        if (instance.clientId() != null) {
            json.addProperty("clientId", instance.clientId());
        }
        if (instance.kafkaVersion() != null) {
            json.addProperty("kafkaVersion", instance.kafkaVersion());
        }
        String topology = instance.topology();
        if (topology == null) {
            limitations.add(new Limitation("topology", "no metric tells it", Limitation.Kind.Failed));
        } else if (topology.getBytes(StandardCharsets.UTF_8).length > MAX_TOPOLOGY_BYTES) {
            limitations.add(new Limitation("topology", "its description is longer than 256 KiB", Limitation.Kind.Failed));
        } else {
            json.addProperty("topology", topology);
        }
    }

    /** Returns the tasks from the instance's metrics, or null if they are unreadable. It also updates the instance from its metrics. */
    static List<TaskMetrics.Task> tasks(Instance instance, KafkaApi kafka, Object streams, List<Limitation> limitations) {
        try {
            long beganAt = System.nanoTime();
            TaskMetrics taskMetrics = new TaskMetrics();
            Map<String, String> threadStates = new HashMap<>();
            for (KafkaApi.Metric metric : kafka.metrics(streams)) {
                switch (metric.group()) {
                    case "stream-task-metrics" -> taskMetrics.add(metric.tag("task-id"), metric.name());
                    case "stream-metrics" -> update(instance, metric);
                    case "stream-thread-metrics" -> {
                        if (metric.name().equals("state")) {
                            threadStates.put(metric.tag("thread-id"), String.valueOf(metric.value()));
                        }
                    }
                    default -> { }
                }
            }
            instance.updateThreadStates(threadStates);
            List<TaskMetrics.Task> read = taskMetrics.tasks();
            instance.updateRestoring(
                    read.stream().filter(task -> "restoring".equals(task.state())).map(TaskMetrics.Task::id).collect(Collectors.toSet()), beganAt);
            return read;
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            limitations.add(Limitation.failed("tasks", e));
            return null;
        }
    }

    private static void update(Instance instance, KafkaApi.Metric metric) throws ReflectiveOperationException {
        instance.updateProcessId(metric.tag("process-id"));
        switch (metric.name()) {
            case "version" -> {
                instance.updateKafkaVersion(String.valueOf(metric.value()));
                instance.updateClientId(metric.tag("client-id"));
            }
            case "topology-description" -> {
                if (instance.topology() == null) {
                    instance.updateTopology(String.valueOf(metric.value()));
                }
            }
            default -> { }
        }
    }

    /**
     * Returns positions by task ID, for standbys and restoring actives. Kafka returns the end of the changelog for a running active, so this
     * method omits it. It asks the broker only if a task needs a position.
     */
    private static Map<String, List<KafkaApi.Position>> positions(
            Instance instance, List<TaskMetrics.Task> tasks, KafkaApi kafka, Object streams, String state, List<Limitation> limitations) {
        Map<String, List<KafkaApi.Position>> wanted = new HashMap<>();
        tasks.stream().filter(task -> !"running".equals(task.state())).forEach(task -> wanted.put(task.id(), new ArrayList<>()));
        if (wanted.isEmpty() || !state.equals("RUNNING") && !state.equals("REBALANCING")) {
            return wanted;
        }
        try {
            for (KafkaApi.Position position : kafka.positions(streams)) {
                List<KafkaApi.Position> ofTask = wanted.get(instance.subtopologies().get(position.store()) + "_" + position.partition());
                if (ofTask != null && position.position() >= 0) {
                    ofTask.add(position);
                }
            }
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            limitations.add(Limitation.failed("positions", e));
        }
        return wanted;
    }

    private static JsonObject json(TaskMetrics.Task task, Long bytes, List<KafkaApi.Position> positions) {
        JsonObject json = new JsonObject();
        json.addProperty("id", task.id());
        json.addProperty("role", task.active() ? "active" : "standby");
        if (task.state() != null) {
            json.addProperty("state", task.state());
        }
        if (bytes != null) {
            json.addProperty("stateBytes", bytes);
        }
        if (!positions.isEmpty()) {
            JsonArray stores = new JsonArray();
            for (KafkaApi.Position position : positions) {
                JsonObject store = new JsonObject();
                store.addProperty("store", position.store());
                store.addProperty("partition", position.partition());
                store.addProperty("position", position.position());
                stores.add(store);
            }
            json.add("stores", stores);
        }
        return json;
    }
}
