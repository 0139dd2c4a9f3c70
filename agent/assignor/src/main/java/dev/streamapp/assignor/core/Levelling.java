package dev.streamapp.assignor.core;

import java.util.Comparator;
import java.util.function.IntPredicate;

/**
 * Moves single tasks from full processes to empty ones while that helps by more than the tolerance.
 *
 * <p>Every move makes the sum of squared loads per thread smaller, so it ends.
 */
final class Levelling {

    /** Lets a task aim at a process, and keeps the loads in step. */
    interface Move {
        void to(int task, int process);
    }

    private final Board board;
    private final long[] load;
    private final IntPredicate movable;
    private final Move move;

    /**
     * Prepare, without moving anything.
     *
     * @param load by process; what {@code move} keeps in step
     * @param movable which tasks may go
     */
    Levelling(Board board, long[] load, IntPredicate movable, Move move) {
        this.board = board;
        this.load = load;
        this.movable = movable;
        this.move = move;
    }

    /** Move tasks until nothing helps any more. */
    void level() {
        // The sum ends it much earlier; this is the last safeguard of a method that must come back.
        int most = board.processes.length > 1 ? 4 * board.tasks.length : 0;
        int moved = 0;
        while (moved < most && moveOne()) {
            moved++;
        }
    }

    private boolean moveOne() {
        int[] lightest = lightest();
        boolean[] tried = new boolean[board.processes.length];
        for (int from = fullest(lightest, tried); from != Board.NONE; from = fullest(lightest, tried)) {
            tried[from] = true;
            // What does not help for the lightest task helps for no other one.
            int to = emptiest(from, lightest[from]);
            if (board.relieves(load, from, to, lightest[from])) {
                move.to(choose(from, to), to);
                return true;
            }
        }
        return false;
    }

    private int[] lightest() {
        int[] lightest = new int[board.processes.length];
        for (int task = 0; task < board.tasks.length; task++) {
            if (movable.test(task)) {
                int at = board.goal[task];
                int weight = board.tasks[task].weight();
                lightest[at] = lightest[at] == 0 ? weight : Math.min(lightest[at], weight);
            }
        }
        return lightest;
    }

    private int fullest(int[] lightest, boolean[] tried) {
        int best = Board.NONE;
        for (int process = 0; process < board.processes.length; process++) {
            if (lightest[process] > 0 && !tried[process]
                && (best == Board.NONE || load[process] * board.threads(best) > load[best] * board.threads(process))) {
                best = process;
            }
        }
        return best;
    }

    private int emptiest(int from, int weight) {
        int best = Board.NONE;
        for (int process = 0; process < board.processes.length; process++) {
            if (process != from && (best == Board.NONE
                || (load[process] + weight) * board.threads(best) < (load[best] + weight) * board.threads(process))) {
                best = process;
            }
        }
        return best;
    }

    private int choose(int from, int to) {
        Comparator<Integer> order = order(from, to);
        int best = Board.NONE;
        for (int task = 0; task < board.tasks.length; task++) {
            boolean may = movable.test(task) && board.goal[task] == from && board.relieves(load, from, to, board.tasks[task].weight());
            if (may && (best == Board.NONE || order.compare(task, best) < 0)) {
                best = task;
            }
        }
        return best;
    }

    /** What is on its way anyway; then what is ready, near to ready, crowded at the old place, and heavy. */
    private Comparator<Integer> order(int from, int to) {
        return Comparator.comparing((Integer task) -> board.active[task] == from)
            .thenComparing(task -> !board.isReady(task, to))
            .thenComparingLong(task -> board.hasCopy(task, to) ? board.lag(task, to) : Long.MAX_VALUE)
            .thenComparingInt(task -> board.alike(task, to) - board.alike(task, from))
            .thenComparingInt(task -> -board.tasks[task].weight());
    }
}
