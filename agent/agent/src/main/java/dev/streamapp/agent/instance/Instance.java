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

/**
 * One KafkaStreams object, with the values that do not change in its life. It holds the object by a weak reference.
 *
 * <p>The constructing thread creates it; the probing thread reads it.
 */
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
     * The restoring tasks of the last probe. During a hand-over the metrics of a task disappear one by one, so it may appear to restore.
     * A task therefore counts as restoring only after two probes some time apart.
     *
     * @param any whether an active task restores
     * @param perhaps whether a second probe must confirm it
     * @param at the start of the probe, by System.nanoTime
     */
    public record Restoring(boolean any, boolean perhaps, long at) { }

    public Instance(Object streams, InstanceConfig configuration) {
        this.streams = new WeakReference<>(streams);
        this.configuration = configuration;
        this.processId = fieldOf(streams);
    }

    /** Reads the private field of releases from 2.6 on. A public metric tag has the process ID only from 4.0 on. */
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
            // The probe reads the metrics, and reports a limitation if they lack it too.
        }
        return null;
    }

    public Object streams() {
        return streams.get();
    }

    public InstanceConfig configuration() {
        return configuration;
    }

    /** Returns the name of KafkaStreams#state, one volatile read. It remembers the first RUNNING. */
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

    /** Returns the restoring tasks of the last probe, or null before the first. */
    public Restoring restoring() {
        return restoring;
    }

    /** Stores the active tasks without a running topology. It ignores a probe that is older than the last one. */
    public synchronized void updateRestoring(Set<String> tasks, long at) {
        if (restoring != null && at < restoring.at()) {
            return;
        }
        restoringSince.keySet().retainAll(tasks);
        tasks.forEach(task -> restoringSince.putIfAbsent(task, at));
        boolean any = restoringSince.values().stream().anyMatch(since -> at - since >= APART_NANOS);
        restoring = new Restoring(any, !any && !tasks.isEmpty(), at);
    }

    /** Returns the number of task directories that KafkaStreams#cleanUp removed before the start. */
    public int cleanedTasks() {
        return cleanedTasks;
    }

    synchronized void addCleaned(int tasks) {
        cleanedTasks += tasks;
    }

    public String processId() {
        return processId;
    }

    /** Stores the value of the metric, which wins over the private field. */
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

    /** Returns the thread states of the last metrics, from 4.0 on. Kafka updates the thread metadata only when a thread turns RUNNING. */
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
