package dev.streamapp.assignor;

import dev.streamapp.assignor.core.model.Announcement;
import dev.streamapp.assignor.core.model.AssignmentResult;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Lets follow-ups grow rare while an operator announces who leaves: it triggers a rebalance by itself once learners are ready.
 *
 * <p>A follow-up comes after a third of the time for which the same processes have been leaving, in its bounds. So a drain of two hours has some
 * dozens of rebalances more, and one of half a minute is as quick as ever. A new leader begins with the shortest interval.
 */
final class FollowUpInterval {

    private static final long LONGEST_MILLIS = 60_000;
    private static final int SHARE = 3;
    private static final Map<String, Leaving> SINCE = new ConcurrentHashMap<>();

    /** Which processes leave, and since when, by System.nanoTime in milliseconds. */
    private record Leaving(Set<String> processes, long since) {}

    private FollowUpInterval() {}

    /**
     * Return the result with the interval of its follow-up.
     *
     * @param nowMillis a monotonic clock
     */
    static AssignmentResult applied(String applicationId, Announcement announcement, AssignmentResult result, long nowMillis) {
        if (announcement.state() != Announcement.State.SET) {
            SINCE.remove(applicationId);
            return result;
        }
        Leaving leaving = SINCE.compute(applicationId, (id, known) ->
            known != null && known.processes().equals(announcement.leaving()) ? known : new Leaving(announcement.leaving(), nowMillis));
        Optional<AssignmentResult.FollowUp> followUp = result.followUp().map(wish -> wish.purpose() != AssignmentResult.Purpose.LEARNING ? wish
            : new AssignmentResult.FollowUp(grown(wish.millis(), nowMillis - leaving.since()), wish.purpose()));
        return new AssignmentResult(result.placements(), result.moves(), result.learners(), followUp, result.fellBack(), result.warmInMillis());
    }

    private static long grown(long usual, long elapsed) {
        return Math.max(usual, Math.min(elapsed / SHARE, LONGEST_MILLIS));
    }
}
