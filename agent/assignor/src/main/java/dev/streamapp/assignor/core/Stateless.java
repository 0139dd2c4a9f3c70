package dev.streamapp.assignor.core;

import java.util.ArrayList;
import java.util.List;

/**
 * Places the tasks that have nothing to learn: they keep their owner, leave a leaving one at once, and even out what the others leave uneven.
 *
 * <p>The loads are those that the stateful tasks will end with, so that a stateless task does not go to and fro while others learn.
 */
final class Stateless {

    private final Board board;
    private final long[] load;

    Stateless(Board board) {
        this.board = board;
        this.load = board.load.clone();
    }

    /**
     * Give every stateless task an active process.
     *
     * @param frozen no task that has an owner leaves it
     * @param balanced tasks also move for the sake of balance
     */
    void place(boolean frozen, boolean balanced) {
        List<Integer> homeless = new ArrayList<>();
        for (int task = 0; task < board.tasks.length; task++) {
            if (!board.isStateful(task)) {
                int owner = board.owner[task];
                if (owner != Board.NONE && (frozen || board.stays[owner])) {
                    aim(task, owner);
                } else {
                    homeless.add(task);
                }
            }
        }
        homeless.forEach(task -> aim(task, board.roomiest(task, load, process -> board.stays[process])));
        if (balanced) {
            new Levelling(board, load, task -> !board.isStateful(task), this::aim).level();
        }
        for (int task = 0; task < board.tasks.length; task++) {
            if (!board.isStateful(task)) {
                board.give(task, board.goal[task], why(task));
            }
        }
    }

    private void aim(int task, int process) {
        if (board.goal[task] != Board.NONE) {
            load[board.goal[task]] -= board.tasks[task].weight();
        }
        load[process] += board.tasks[task].weight();
        board.aim(task, process);
    }

    private String why(int task) {
        int owner = board.owner[task];
        if (owner == Board.NONE) {
            return "orphan without state, by room";
        }
        return board.stays[owner] ? "balance, it has no state" : "its owner leaves, it has no state";
    }
}
