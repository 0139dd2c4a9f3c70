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
 */
public record Process(String id, int threads, Set<String> actives, Set<String> standbys, Map<String, Long> lags) {

    /** Kafka's mark for the copy of an active that processes. */
    public static final long RUNNING = -2;

    private static final int MOST_THREADS = 10_000;

    /** Fills what is missing, drops nulls, and brings the threads into their bounds. */
    public Process {
        id = Objects.requireNonNullElse(id, "");
        threads = Math.max(1, Math.min(threads, MOST_THREADS));
        actives = present(actives);
        standbys = present(standbys);
        lags = known(lags);
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
