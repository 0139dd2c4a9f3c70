package dev.streamapp.agent.instance;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import dev.streamapp.agent.kafka.KafkaApi;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * When each active task last began to run in this JVM, and when it last stopped.
 *
 * <p>Looks come once a second, and a hand-over takes less. So the threads of Kafka Streams say it themselves as a task changes its state.
 * A task begins with the state RUNNING, its store restored. It stops with the next other state, after its commit.
 */
public final class TaskTimes {

    private static final String TASK = "org.apache.kafka.streams.processor.internals.Task";
    private static final Pattern THREAD = Pattern.compile("-(StreamThread|StateUpdater)-\\d+$");
    private static final long KEPT_NANOS = TimeUnit.MINUTES.toNanos(10);
    private static final int MAX_TASKS = 2_000;
    private final LongSupplier nanoTime;
    private final Map<String, LinkedHashMap<String, Times>> byClient = new HashMap<>();

    /** The moments by the monotonic clock; null before the first. */
    private record Times(Long startedAt, Long stoppedAt, boolean runs) {
        long last() {
            return startedAt == null || stoppedAt != null && stoppedAt - startedAt > 0 ? stoppedAt : startedAt;
        }
    }

    public TaskTimes(LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
    }

    /** Called by the thread that has just changed the state of the task. The name of the thread tells the instance. */
    public void changed(Object task, Object state) throws ReflectiveOperationException {
        KafkaApi kafka = new KafkaApi(task.getClass().getClassLoader());
        if (Boolean.TRUE.equals(kafka.call(TASK, "isActive", task))) {
            changed(THREAD.matcher(Thread.currentThread().getName()).replaceFirst(""), String.valueOf(kafka.call(TASK, "id", task)), ((Enum<?>) state).name());
        }
    }

    /** Returns the client ID that the name of a thread of Kafka Streams begins with; empty for other threads. */
    static String clientOf(String thread) {
        Matcher found = THREAD.matcher(thread);
        return found.find() ? thread.substring(0, found.start()) : "";
    }

    synchronized void changed(String client, String task, String state) {
        LinkedHashMap<String, Times> tasks = byClient.computeIfAbsent(client, none -> new LinkedHashMap<>());
        Times before = tasks.getOrDefault(task, new Times(null, null, false));
        boolean runs = state.equals("RUNNING");
        if (runs == before.runs()) {
            return;
        }
        long now = nanoTime.getAsLong();
        tasks.remove(task);
        tasks.put(task, runs ? new Times(now, before.stoppedAt(), true) : new Times(before.startedAt(), now, false));
        tasks.values().removeIf(times -> !times.runs() && now - times.last() > KEPT_NANOS);
        while (tasks.size() > MAX_TASKS) {
            tasks.remove(tasks.keySet().iterator().next());
        }
    }

    /**
     * Returns the changes of the last ten minutes, in the form of the report.
     *
     * @param client the client ID of the instance
     * @param at the moment from which the report counts back, by System.nanoTime
     */
    public synchronized JsonArray json(String client, long at) {
        JsonArray array = new JsonArray();
        byClient.getOrDefault(client, new LinkedHashMap<>()).forEach((task, times) -> {
            if (at - times.last() <= KEPT_NANOS) {
                JsonObject json = new JsonObject();
                json.addProperty("id", task);
                add(json, "startedAgoMillis", times.startedAt(), at);
                add(json, "stoppedAgoMillis", times.stoppedAt(), at);
                array.add(json);
            }
        });
        return array;
    }

    private static void add(JsonObject json, String name, Long moment, long at) {
        if (moment != null) {
            json.addProperty(name, Math.max(0, TimeUnit.NANOSECONDS.toMillis(at - moment)));
        }
    }
}
