package dev.streamapp.assignor.core.model;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * An assignment with its reasons.
 *
 * @param placements what each process gets; every process of the group is there
 * @param moves actives that go to another process than the one that had them, and orphans that were placed
 * @param learners copies that are made for a move that is still to come
 * @param followUp when the group is to look again, if it is
 * @param fellBack why the previous owners were kept instead of the assignor's own result; empty where they were not
 */
public record AssignmentResult(
    Map<String, Placement> placements, List<Move> moves, List<Learner> learners, Optional<FollowUp> followUp, String fellBack) {

    /** The tasks of one process. */
    public record Placement(Set<String> actives, Set<String> standbys) {}

    /** An active's new place; {@code from} is empty where no process had it. */
    public record Move(String task, String from, String to, String why) {}

    /** A copy that is to take its task over. */
    public record Learner(String task, String process, boolean ready) {}

    /** A wish to look again. */
    public record FollowUp(long millis, Purpose purpose) {}

    /** Why the group is to look again. */
    public enum Purpose {
        /** Learners are not ready, or wait for others, or what is planned could not begin yet. */
        LEARNING,
        /** It is not known yet who leaves. */
        UNKNOWN,
        /** Nothing is to be done as long as the announcement stands. */
        EXPIRY;

        /** Return the word for it in the agent's protocol. */
        public String word() {
            return name().toLowerCase(java.util.Locale.ROOT);
        }
    }

    /** Return how many actives go to another process than the one that had them. */
    public long moved() {
        return moves.stream().filter(move -> !move.from().isEmpty()).count();
    }

    /** Return how many learners are ready and wait, or are not ready. */
    public long learning(boolean ready) {
        return learners.stream().filter(learner -> learner.ready() == ready).count();
    }
}
