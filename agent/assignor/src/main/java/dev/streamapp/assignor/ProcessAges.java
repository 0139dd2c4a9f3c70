package dev.streamapp.assignor;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Remembers since when the leader has known each process, so that no task moves to a JVM that has just started.
 *
 * <p>A process is new if the leader's last round was without it; a pod that returns with its volume has its old ID, but was away for a round.
 * The age of all others is unknown, and they count as warm: those of the leader's first round, so a new leader waits for none of them.
 */
final class ProcessAges {

    /** By application, since when each process of its last round has been there. */
    static final Map<String, Map<String, Long>> SEEN = new ConcurrentHashMap<>();

    /** The time of a process that the leader found in its first round. */
    private static final Long ALWAYS = Long.MIN_VALUE;

    private ProcessAges() {}

    /**
     * Remember who is there in this round.
     *
     * @param warmMillis after so long a new process counts as warm
     * @param nowMillis a monotonic clock
     * @return by process, in how many milliseconds it counts as warm; warm ones are left out
     */
    static Map<String, Long> coldMillis(String applicationId, Set<String> processes, long warmMillis, long nowMillis) {
        Map<String, Long> seen = SEEN.compute(applicationId, (id, before) -> {
            Map<String, Long> now = new HashMap<>();
            processes.forEach(process -> now.put(process, before == null ? ALWAYS : before.getOrDefault(process, nowMillis)));
            return now;
        });
        Map<String, Long> cold = new HashMap<>();
        seen.forEach((process, since) -> {
            long left = since.equals(ALWAYS) ? 0 : since + warmMillis - nowMillis;
            if (left > 0) {
                cold.put(process, left);
            }
        });
        return cold;
    }
}
