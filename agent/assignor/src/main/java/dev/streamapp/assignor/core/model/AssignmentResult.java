package dev.streamapp.assignor.core.model;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * An assignment with its reasons.
 *
 * @param placements the tasks of each process; it has every process of the group
 * @param moves actives that change their process, and placed orphans
 * @param learners copies for later moves
 * @param followUp the time and reason of the next rebalance, if one is needed
 * @param fellBack why the result has the previous owners instead of a plan; empty if it has a plan
 * @param warmInMillis in how many milliseconds the first process is warm that takes over a task of the plan; empty if all of them are
 */
public record AssignmentResult(
    Map<String, Placement> placements, List<Move> moves, List<Learner> learners, Optional<FollowUp> followUp, String fellBack,
    Optional<Long> warmInMillis) {

    /** A result in which no move waits for a process to be warm. */
    public AssignmentResult(
        Map<String, Placement> placements, List<Move> moves, List<Learner> learners, Optional<FollowUp> followUp, String fellBack) {
        this(placements, moves, learners, followUp, fellBack, Optional.empty());
    }

    /** The tasks of one process. */
    public record Placement(Set<String> actives, Set<String> standbys) {}

    /** An active's new place; {@code from} is empty where no process had it. */
    public record Move(String task, String from, String to, String why) {}

    /** A copy that will take its task over. */
    public record Learner(String task, String process, boolean ready) {}

    /** A request for another rebalance. */
    public record FollowUp(long millis, Purpose purpose) {}

    /** The reason of a follow-up. */
    public enum Purpose {
        /** Learners are not ready, or wait for others, or a planned move could not start yet. */
        LEARNING,
        /** The leaving processes are unknown. */
        UNKNOWN,
        /** The plan is complete until the announcement expires. */
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
