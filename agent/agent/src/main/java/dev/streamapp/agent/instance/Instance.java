package dev.streamapp.agent.instance;

import dev.streamapp.agent.config.InstanceConfig;
import dev.streamapp.agent.kafka.KafkaApi;
import java.lang.ref.WeakReference;
import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/** One KafkaStreams object, held weakly, with what does not change in its life. Made by the constructing thread, read by the looking thread. */
public final class Instance {

    private static final Pattern UUID = Pattern.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}");
    public static final long APART_NANOS = TimeUnit.MILLISECONDS.toNanos(250);
    private final WeakReference<Object> streams;
    private final InstanceConfig configuration;
    private volatile String processId;
    private volatile String topology;
    private volatile Map<String, String> subtopologies = Map.of();
    private volatile String kafkaVersion;
    private volatile String clientId;
    private volatile Map<String, String> threadStates = Map.of();
    private volatile boolean wasRunning;
    private volatile Restoring restoring;
    private final Map<String, Long> restoringSince = new HashMap<>();
    private volatile int cleanedTasks;

    /**
     * What the last look at the tasks saw. The metrics of a task that is handed over go one by one, so that for a moment it looks as if it restored:
     * a task counts once two looks some time apart have seen it so.
     *
     * @param any whether an active task restores
     * @param perhaps whether that needs a second look
     * @param at when the look began, by System.nanoTime
     */
    public record Restoring(boolean any, boolean perhaps, long at) { }

    public Instance(Object streams, InstanceConfig configuration) {
        this.streams = new WeakReference<>(streams);
        this.configuration = configuration;
        this.processId = fieldOf(streams);
    }

    /** The process ID is public only from 4.0 on, as a metric's tag; before, there is this private field of every release from 2.6 on. */
    private static String fieldOf(Object streams) {
        try {
            for (Class<?> type = streams.getClass(); type != null; type = type.getSuperclass()) {
                if (type.getName().equals(KafkaApi.STREAMS)) {
                    Field field = type.getDeclaredField("processId");
                    field.setAccessible(true);
                    String value = String.valueOf(field.get(streams));
                    return UUID.matcher(value).matches() ? value : null;
                }
            }
        } catch (ReflectiveOperationException | RuntimeException e) {
            // The look asks the metrics, and reports an aside where they do not say it either.
        }
        return null;
    }

    public Object streams() {
        return streams.get();
    }

    public InstanceConfig configuration() {
        return configuration;
    }

    /** KafkaStreams#state by its name: one volatile read of Kafka's. Remembers that it was RUNNING once. */
    public String state(KafkaApi kafka) throws ReflectiveOperationException {
        Object object = streams.get();
        String state = object == null ? "" : kafka.state(object);
        if (state.equals("RUNNING")) {
            wasRunning = true;
        }
        return state;
    }

    public boolean wasRunning() {
        return wasRunning;
    }

    /** What the last look at the tasks saw; null before the first. */
    public Restoring restoring() {
        return restoring;
    }

    /** Takes the active tasks that one look saw without a running topology, by their IDs; older looks that come late are left out. */
    public synchronized void updateRestoring(Set<String> tasks, long at) {
        if (restoring != null && at < restoring.at()) {
            return;
        }
        restoringSince.keySet().retainAll(tasks);
        tasks.forEach(task -> restoringSince.putIfAbsent(task, at));
        boolean any = restoringSince.values().stream().anyMatch(since -> at - since >= APART_NANOS);
        restoring = new Restoring(any, !any && !tasks.isEmpty(), at);
    }

    /** How many task directories KafkaStreams#cleanUp has removed before the start. */
    public int cleanedTasks() {
        return cleanedTasks;
    }

    synchronized void addCleaned(int tasks) {
        cleanedTasks += tasks;
    }

    public String processId() {
        return processId;
    }

    /** Takes what a metric says; the public word outweighs the field. */
    public void updateProcessId(String value) {
        if (value != null && UUID.matcher(value).matches()) {
            processId = value;
        }
    }

    public String clientId() {
        return clientId;
    }

    public void updateClientId(String value) {
        clientId = value;
    }

    public String kafkaVersion() {
        return kafkaVersion;
    }

    public void updateKafkaVersion(String value) {
        kafkaVersion = value;
    }

    /** States by thread name as the last metrics had them, from 4.0 on; the threads' metadata is renewed only when a thread turns RUNNING. */
    public Map<String, String> threadStates() {
        return threadStates;
    }

    public void updateThreadStates(Map<String, String> states) {
        threadStates = Map.copyOf(states);
    }

    public String topology() {
        return topology;
    }

    public Map<String, String> subtopologies() {
        return subtopologies;
    }

    public void updateTopology(String description) {
        subtopologies = TaskMetrics.subtopologies(description);
        topology = description;
    }
}
