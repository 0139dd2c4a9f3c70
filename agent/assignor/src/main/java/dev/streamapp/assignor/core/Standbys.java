package dev.streamapp.assignor.core;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** Places the configured standbys: ready copies first, the former owner's before others, then copies that are behind, then room. */
final class Standbys {

    private final Board board;
    private final Takeover takeover;
    private final List<List<Integer>> holders = new ArrayList<>();

    /** By process, how many copies it has with what was placed so far. */
    private final long[] copies;

    Standbys(Board board, Takeover takeover) {
        this.board = board;
        this.takeover = takeover;
        this.copies = new long[board.processes.length];
    }

    /** Choose the configured number of standbys for every stateful task, as far as there are processes that stay. */
    void choose() {
        for (int task = 0; task < board.tasks.length; task++) {
            copies[board.goal[task]]++;
        }
        for (int task = 0; task < board.tasks.length; task++) {
            List<Integer> chosen = new ArrayList<>();
            if (board.isStateful(task)) {
                fill(task, chosen);
            }
            holders.add(chosen);
        }
    }

    /** Keep every copy there is: where nobody knows the plan, a learner looks like any other copy. */
    void keepAll() {
        for (int task = 0; task < board.tasks.length; task++) {
            int at = task;
            List<Integer> kept = new ArrayList<>();
            if (board.isStateful(task)) {
                board.copies(task).stream().filter(process -> process != board.active[at] && board.stays[process]).forEach(kept::add);
            }
            holders.add(kept);
        }
    }

    private void fill(int task, List<Integer> chosen) {
        int wanted = board.group.settings().standbys();
        boolean borrows = isBorrowed(task);
        for (int slot = 0; slot < wanted; slot++) {
            int process = next(task, chosen);
            if (process == Board.NONE || borrows && !board.hasCopy(task, process)) {
                return;
            }
            chosen.add(process);
            copies[process]++;
        }
    }

    private int next(int task, List<Integer> chosen) {
        Comparator<Integer> order = Comparator.comparingInt((Integer process) -> rank(task, process))
            .thenComparingLong(process -> rank(task, process) == BEHIND ? board.lag(task, process) : 0);
        int best = Board.NONE;
        for (int process = 0; process < board.processes.length; process++) {
            if (board.stays[process] && process != board.active[task] && !chosen.contains(process)
                && !takeover.isLearner(task, process)) {
                int compared = best == Board.NONE ? -1 : order.compare(process, best);
                if (compared < 0 || compared == 0 && copies[process] * board.threads(best) < copies[best] * board.threads(process)) {
                    best = process;
                }
            }
        }
        return best;
    }

    /**
     * Return whether a standby has become the learner of an owner that stays.
     *
     * <p>That owner will hold the standby after the move, so nobody has to restore another one until then.
     */
    private boolean isBorrowed(int task) {
        int goal = board.goal[task];
        return takeover.isLearner(task, goal) && board.hasCopy(task, goal) && board.stays[board.active[task]];
    }

    private static final int FORMER = 0;
    private static final int READY = 1;
    private static final int BEHIND = 2;
    private static final int WITHOUT = 3;

    private int rank(int task, int process) {
        if (!board.hasCopy(task, process)) {
            return WITHOUT;
        }
        if (!board.isReady(task, process)) {
            return BEHIND;
        }
        return board.owner[task] == process ? FORMER : READY;
    }

    /** Return the processes that get a standby of the task. */
    List<Integer> of(int task) {
        return holders.get(task);
    }
}
