package dev.streamapp.assignor.core;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Chooses who takes over the stateful tasks of leaving processes: holders of ready copies, then of others, then room.
 *
 * <p>The choice is made anew in every round and must come out the same while nothing but lags changes. That is why a holder is only
 * refused where it would end above the level that an even distribution needs, and why learners show as holders in the next round.
 */
final class LeavingPlan {

    private final Board board;

    /** The level as a fraction: load and threads of the fullest process of an even distribution. */
    private long fullest;

    private long fullestThreads = 1;
    private long slack;

    LeavingPlan(Board board) {
        this.board = board;
    }

    /** Let every stateful task of a leaving process aim at a staying one. */
    void make() {
        List<Integer> leaving = new ArrayList<>();
        for (int task = 0; task < board.tasks.length; task++) {
            if (board.isStateful(task) && !board.stays[board.active[task]]) {
                leaving.add(task);
            }
        }
        fill(leaving);
        List<Integer> scarceFirst = new ArrayList<>(leaving);
        scarceFirst.sort(Comparator.comparingLong(this::choices));
        scarceFirst.removeIf(task -> aimed(task, true));
        leaving.retainAll(new java.util.HashSet<>(scarceFirst));
        leaving.removeIf(task -> aimed(task, false));
        leaving.forEach(task -> board.aim(task, board.roomiest(task, board.load, process -> board.stays[process])));
    }

    private long choices(int task) {
        return board.copies(task).stream().filter(process -> board.stays[process] && board.isReady(task, process)).count();
    }

    /** Find the level by distributing the tasks by room alone. */
    private void fill(List<Integer> leaving) {
        long[] loads = board.load.clone();
        for (int task : leaving) {
            int process = board.roomiest(task, loads, candidate -> board.stays[candidate]);
            loads[process] += board.tasks[task].weight();
            if (loads[process] * fullestThreads > fullest * board.threads(process)) {
                fullest = loads[process];
                fullestThreads = board.threads(process);
            }
            slack = Math.max(slack, board.tasks[task].weight() - 1L);
        }
    }

    private boolean aimed(int task, boolean ready) {
        int best = Board.NONE;
        for (int process = board.copies(task).nextSetBit(0); process >= 0; process = board.copies(task).nextSetBit(process + 1)) {
            if (board.stays[process] && fits(task, process) && board.isReady(task, process) == ready
                && (best == Board.NONE || isBetter(task, process, best, ready))) {
                best = process;
            }
        }
        if (best != Board.NONE) {
            board.aim(task, best);
        }
        return best != Board.NONE;
    }

    private boolean fits(int task, int process) {
        return (board.load[process] + board.tasks[task].weight() - slack) * fullestThreads <= fullest * board.threads(process);
    }

    private boolean isBetter(int task, int process, int than, boolean ready) {
        if (ready) {
            return board.load[process] * board.threads(than) < board.load[than] * board.threads(process);
        }
        return board.lag(task, process) < board.lag(task, than);
    }
}
