package dev.streamapp.assignor.core.model;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * One Kafka Streams process, as its members described it when they joined.
 *
 * @param id its process ID
 * @param threads the number of consumers, which is its capacity: 1 to 10,000
 * @param actives its active tasks
 * @param standbys the tasks with state but without the active: standbys, learners, and unused state directories
 * @param lags by task, the records by which its copy is behind; {@link #RUNNING} for a running active. Another negative number, or none, is unknown
 * @param coldMillis in how many milliseconds the process counts as warm, so that planned moves wait for it: 0 to {@link #LONGEST_COLD_MILLIS}
 */
public record Process(String id, int threads, Set<String> actives, Set<String> standbys, Map<String, Long> lags, long coldMillis) {

    /** Kafka's mark for the copy of an active that processes. */
    public static final long RUNNING = -2;

    /** No plan waits longer for a process. */
    public static final long LONGEST_COLD_MILLIS = 60_000;

    private static final int MOST_THREADS = 10_000;

    /** A process that is warm, as every process of unknown age. */
    public Process(String id, int threads, Set<String> actives, Set<String> standbys, Map<String, Long> lags) {
        this(id, threads, actives, standbys, lags, 0);
    }

    /** Fills what is missing, drops nulls, and brings threads and time into their bounds. */
    public Process {
        id = Objects.requireNonNullElse(id, "");
        threads = Math.max(1, Math.min(threads, MOST_THREADS));
        actives = present(actives);
        standbys = present(standbys);
        lags = known(lags);
        coldMillis = Math.max(0, Math.min(coldMillis, LONGEST_COLD_MILLIS));
    }

    private static Set<String> present(Set<String> names) {
        Set<String> kept = new HashSet<>();
        for (String name : names == null ? Set.<String>of() : names) {
            if (name != null) {
                kept.add(name);
            }
        }
        return Set.copyOf(kept);
    }

    private static Map<String, Long> known(Map<String, Long> lags) {
        Map<String, Long> kept = new HashMap<>();
        (lags == null ? Map.<String, Long>of() : lags).forEach((task, lag) -> {
            if (task != null && lag != null) {
                kept.put(task, lag);
            }
        });
        return java.util.Collections.unmodifiableMap(kept);
    }
}
