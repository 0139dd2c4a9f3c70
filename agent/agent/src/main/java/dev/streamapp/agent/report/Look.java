package dev.streamapp.agent.report;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import dev.streamapp.agent.instance.Instance;
import dev.streamapp.agent.instance.Tasks;
import dev.streamapp.agent.kafka.Aside;
import dev.streamapp.agent.kafka.KafkaApi;
import dev.streamapp.agent.runtime.Complaints;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * One look at the instances, as JSON of the report without what changes between looks.
 *
 * @param sequence rises with every look
 * @param beganAt when it began, by System.nanoTime
 * @param instances the report's {@code instances}, without {@code lastRound}
 */
public record Look(long sequence, long beganAt, JsonArray instances) {

    static final int LONGEST_TOPOLOGY = 256 * 1024;

    static Look at(long sequence, long beganAt, List<Instance> instances) {
        JsonArray array = new JsonArray();
        for (Instance instance : instances) {
            Object streams = instance.streams();
            if (streams != null) {
                JsonObject json = lookAt(instance, streams);
                if (json != null) {
                    array.add(json);
                }
            }
        }
        return new Look(sequence, beganAt, array);
    }

    /** An instance whose state cannot be read is left out: nothing may be said about it. */
    private static JsonObject lookAt(Instance instance, Object streams) {
        KafkaApi kafka = new KafkaApi(KafkaApi.loaderOf(streams, KafkaApi.STREAMS));
        List<Aside> asides = new ArrayList<>(instance.configuration().asides());
        JsonObject json = instance.configuration().json().deepCopy();
        json.addProperty("applicationId", instance.configuration().applicationId());
        String state;
        try {
            state = instance.state(kafka);
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            Complaints.say("the state of an instance cannot be read: " + KafkaApi.reason(e));
            return null;
        }
        json.addProperty("clientState", state);
        List<Tasks.Task> tasks = tasks(instance, kafka, streams, asides);
        addThreads(json, instance, kafka, streams);
        addIdentity(json, instance, asides);
        instance.configuration().state().addTo(json);
        if (instance.cleanedTasks() > 0) {
            json.addProperty("cleanedTasks", instance.cleanedTasks());
        }
        if (tasks != null) {
            Map<String, List<KafkaApi.Position>> positions = positions(instance, tasks, kafka, streams, state, asides);
            JsonArray array = new JsonArray();
            tasks.forEach(task -> array.add(json(task, positions.getOrDefault(task.id(), List.of()))));
            json.add("tasks", array);
        }
        JsonArray all = new JsonArray();
        asides.forEach(aside -> all.add(aside.json()));
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
            Complaints.say("the threads of an instance cannot be read: " + KafkaApi.reason(e));
        }
    }

    private static void addIdentity(JsonObject json, Instance instance, List<Aside> asides) {
        if (instance.processId() == null) {
            asides.add(new Aside("processId", "neither a metric nor KafkaStreams tells it", Aside.Kind.Failed));
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
            asides.add(new Aside("topology", "no metric tells it", Aside.Kind.Failed));
        } else if (topology.getBytes(StandardCharsets.UTF_8).length > LONGEST_TOPOLOGY) {
            asides.add(new Aside("topology", "its description is longer than 256 KiB", Aside.Kind.Failed));
        } else {
            json.addProperty("topology", topology);
        }
    }

    /** The tasks by the instance's metrics; null where they cannot be read. Learns on the way what the metrics say of the instance itself. */
    static List<Tasks.Task> tasks(Instance instance, KafkaApi kafka, Object streams, List<Aside> asides) {
        try {
            long beganAt = System.nanoTime();
            Tasks tasks = new Tasks();
            Map<String, String> threadStates = new HashMap<>();
            for (KafkaApi.Metric metric : kafka.metrics(streams)) {
                switch (metric.group()) {
                    case "stream-task-metrics" -> tasks.see(metric.tag("task-id"), metric.name());
                    case "stream-metrics" -> learn(instance, metric);
                    case "stream-thread-metrics" -> {
                        if (metric.name().equals("state")) {
                            threadStates.put(metric.tag("thread-id"), String.valueOf(metric.value()));
                        }
                    }
                    default -> { }
                }
            }
            instance.learnThreadStates(threadStates);
            List<Tasks.Task> found = tasks.found();
            instance.learnRestoring(
                    found.stream().filter(task -> "restoring".equals(task.state())).map(Tasks.Task::id).collect(Collectors.toSet()), beganAt);
            return found;
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            asides.add(Aside.failed("tasks", e));
            return null;
        }
    }

    private static void learn(Instance instance, KafkaApi.Metric metric) throws ReflectiveOperationException {
        instance.learnProcessId(metric.tag("process-id"));
        switch (metric.name()) {
            case "version" -> {
                instance.learnKafkaVersion(String.valueOf(metric.value()));
                instance.learnClientId(metric.tag("client-id"));
            }
            case "topology-description" -> {
                if (instance.topology() == null) {
                    instance.learnTopology(String.valueOf(metric.value()));
                }
            }
            default -> { }
        }
    }

    /**
     * Positions by task ID, of standbys and of actives that restore. Kafka gives the end of the changelog as the position of a running active, so
     * that one is left out; where nobody needs a position, the broker is not asked.
     */
    private static Map<String, List<KafkaApi.Position>> positions(
            Instance instance, List<Tasks.Task> tasks, KafkaApi kafka, Object streams, String state, List<Aside> asides) {
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
            asides.add(Aside.failed("positions", e));
        }
        return wanted;
    }

    private static JsonObject json(Tasks.Task task, List<KafkaApi.Position> positions) {
        JsonObject json = new JsonObject();
        json.addProperty("id", task.id());
        json.addProperty("role", task.active() ? "active" : "standby");
        if (task.state() != null) {
            json.addProperty("state", task.state());
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
