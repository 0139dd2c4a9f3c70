package dev.streamapp.assignor.core;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntPredicate;

/**
 * Finds somebody for every stateful task now: the previous owner, or where there is none the copy that is nearest to ready.
 *
 * <p>The order is: ready copies, previous owners, copies that are not ready, room.
 */
final class Owners {

    private final Board board;
    private final boolean frozen;

    /**
     * Look at one group.
     *
     * @param frozen no task that has an owner leaves it
     */
    Owners(Board board, boolean frozen) {
        this.board = board;
        this.frozen = frozen;
    }

    /** Give every stateful task an active process and let it aim there. */
    void find() {
        List<Integer> orphans = new ArrayList<>();
        for (int task = 0; task < board.tasks.length; task++) {
            if (!board.isStateful(task)) {
                continue;
            }
            if (board.owner[task] == Board.NONE) {
                orphans.add(task);
            } else if (!frozen && isRestoring(task)) {
                rescue(task);
            } else {
                settle(task, board.owner[task], "");
            }
        }
        // Those without a choice come first, so that the loads are known where there is one.
        orphans.removeIf(task -> placedWith(task, process -> board.stays[process] && board.isReady(task, process), "orphan, to a ready copy"));
        // A process that leaves but has the state is better than one that would restore for minutes: it still works, and a learner follows.
        orphans.removeIf(task -> placedWith(task, process -> board.isReady(task, process), "orphan, only a leaving process has its state"));
        orphans.removeIf(this::placedWithNearest);
        orphans.forEach(task -> placedWith(task, process -> board.stays[process], "orphan, by room"));
    }

    private boolean isRestoring(int task) {
        int owner = board.owner[task];
        return board.lagIsKnown(task, owner) && !board.isReady(task, owner);
    }

    /** Nobody processes the task while its owner restores it, so a ready copy takes over at once. */
    private void rescue(int task) {
        IntPredicate able = process -> board.stays[process] && board.hasCopy(task, process) && board.isReady(task, process);
        int process = board.roomiest(task, board.load, able);
        if (process == Board.NONE) {
            settle(task, board.owner[task], "");
        } else {
            settle(task, process, "its owner restores, a ready copy is here");
        }
    }

    private boolean placedWith(int task, IntPredicate may, String why) {
        int process = board.roomiest(task, board.load, may);
        if (process != Board.NONE) {
            settle(task, process, why);
        }
        return process != Board.NONE;
    }

    private boolean placedWithNearest(int task) {
        long least = board.copies(task).stream().filter(process -> board.stays[process])
            .mapToLong(process -> board.lag(task, process)).min().orElse(0);
        IntPredicate nearest = process -> board.stays[process] && board.hasCopy(task, process) && board.lag(task, process) == least;
        return placedWith(task, nearest, "orphan, to the copy nearest to ready");
    }

    private void settle(int task, int process, String why) {
        board.give(task, process, why);
        board.aim(task, process);
    }
}
