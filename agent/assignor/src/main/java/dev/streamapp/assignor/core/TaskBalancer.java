package dev.streamapp.assignor.core;

import java.util.Comparator;
import java.util.function.IntPredicate;

/**
 * Moves single tasks from full processes to empty ones while a move helps by more than the tolerance.
 *
 * <p>Every move reduces the sum of squared loads per thread, so the loop ends.
 */
final class TaskBalancer {

    /** Sets the target of a task, and updates the loads. */
    interface Move {
        void to(int task, int process);
    }

    private final AssignmentDraft draft;
    private final long[] load;
    private final IntPredicate movable;
    private final Move move;

    /**
     * Prepare, without moving anything.
     *
     * @param load by process; what {@code move} keeps in step
     * @param movable which tasks may go
     */
    TaskBalancer(AssignmentDraft draft, long[] load, IntPredicate movable, Move move) {
        this.draft = draft;
        this.load = load;
        this.movable = movable;
        this.move = move;
    }

    /** Move tasks until nothing helps any more. */
    void balance() {
        // The sum ends the loop much earlier. This limit is the last safeguard.
        int most = draft.processes.length > 1 ? 4 * draft.tasks.length : 0;
        int moved = 0;
        while (moved < most && moveOne()) {
            moved++;
        }
    }

    private boolean moveOne() {
        int[] lightest = lightest();
        boolean[] tried = new boolean[draft.processes.length];
        for (int from = fullest(lightest, tried); from != AssignmentDraft.NONE; from = fullest(lightest, tried)) {
            tried[from] = true;
            // What does not help for the lightest task helps for no other one.
            int to = emptiest(from, lightest[from]);
            if (draft.relieves(load, from, to, lightest[from])) {
                move.to(choose(from, to), to);
                return true;
            }
        }
        return false;
    }

    private int[] lightest() {
        int[] lightest = new int[draft.processes.length];
        for (int task = 0; task < draft.tasks.length; task++) {
            if (movable.test(task)) {
                int at = draft.target[task];
                int weight = draft.tasks[task].weight();
                lightest[at] = lightest[at] == 0 ? weight : Math.min(lightest[at], weight);
            }
        }
        return lightest;
    }

    private int fullest(int[] lightest, boolean[] tried) {
        int best = AssignmentDraft.NONE;
        for (int process = 0; process < draft.processes.length; process++) {
            if (lightest[process] > 0 && !tried[process]
                && (best == AssignmentDraft.NONE || load[process] * draft.threads(best) > load[best] * draft.threads(process))) {
                best = process;
            }
        }
        return best;
    }

    private int emptiest(int from, int weight) {
        int best = AssignmentDraft.NONE;
        for (int process = 0; process < draft.processes.length; process++) {
            if (process != from && (best == AssignmentDraft.NONE
                || (load[process] + weight) * draft.threads(best) < (load[best] + weight) * draft.threads(process))) {
                best = process;
            }
        }
        return best;
    }

    private int choose(int from, int to) {
        Comparator<Integer> order = order(from, to);
        int best = AssignmentDraft.NONE;
        for (int task = 0; task < draft.tasks.length; task++) {
            boolean may = movable.test(task) && draft.target[task] == from && draft.relieves(load, from, to, draft.tasks[task].weight());
            if (may && (best == AssignmentDraft.NONE || order.compare(task, best) < 0)) {
                best = task;
            }
        }
        return best;
    }

    /** What is on its way anyway; then what is ready, near to ready, crowded at the old place, and heavy. */
    private Comparator<Integer> order(int from, int to) {
        return Comparator.comparing((Integer task) -> draft.active[task] == from)
            .thenComparing(task -> !draft.isReady(task, to))
            .thenComparingLong(task -> draft.hasCopy(task, to) ? draft.lag(task, to) : Long.MAX_VALUE)
            .thenComparingInt(task -> draft.alike(task, to) - draft.alike(task, from))
            .thenComparingInt(task -> -draft.tasks[task].weight());
    }
}
