package dev.streamapp.assignor.core;

import dev.streamapp.assignor.core.model.Announcement;
import dev.streamapp.assignor.core.model.Outcome;
import dev.streamapp.assignor.core.model.Settings;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Decides which of the planned moves happen in this round, and which copies learn for a later one.
 *
 * <p>A conservative process takes over nothing until all copies that learn for it are ready, and then everything in one step.
 */
final class Takeover {

    private final Board board;
    private final boolean frozen;
    private final boolean[] learns;
    private final List<Outcome.Learner> learners = new ArrayList<>();
    private boolean pending;
    private long free;

    /**
     * Look at one group with its plan.
     *
     * @param frozen nothing moves
     */
    Takeover(Board board, boolean frozen) {
        this.board = board;
        this.frozen = frozen;
        this.learns = new boolean[board.tasks.length];
    }

    /** Move what may move. */
    void make() {
        List<Integer> planned = planned();
        List<Integer> ready = planned.stream().filter(task -> board.isReady(task, board.goal[task])).toList();
        boolean[] waits = new boolean[board.processes.length];
        // Copies that are ready and wait for others count: the limit is on copies that exist beside the standbys.
        free = Math.max(0, limit() - ready.size());
        planned.stream().filter(task -> !board.isReady(task, board.goal[task])).limit(free).toList().forEach(task -> {
            free--;
            learn(task, false);
            waits[board.goal[task]] = !board.group.announcement().eager();
        });
        for (int task : ready) {
            if (frozen || waits[board.goal[task]]) {
                learn(task, true);
            } else {
                board.give(task, board.goal[task], why(task));
            }
        }
        pending = planned.stream().anyMatch(task -> board.active[task] != board.goal[task]);
    }

    private List<Integer> planned() {
        List<Integer> planned = new ArrayList<>();
        for (int task = 0; task < board.tasks.length; task++) {
            if (board.isStateful(task) && board.goal[task] != board.active[task]) {
                planned.add(task);
            }
        }
        // Learners that have begun are kept before others begin.
        planned.sort(Comparator.comparing((Integer task) -> !board.hasCopy(task, board.goal[task]))
            .thenComparingLong(task -> board.lag(task, board.goal[task])));
        return planned;
    }

    private long limit() {
        Settings settings = board.group.settings();
        boolean set = board.group.announcement().state() == Announcement.State.SET;
        return set ? settings.leavingLearners() : settings.balanceLearners();
    }

    private void learn(int task, boolean ready) {
        learns[task] = true;
        learners.add(new Outcome.Learner(board.tasks[task].id(), board.processes[board.goal[task]].id(), ready));
    }

    private String why(int task) {
        return board.stays[board.active[task]] ? "balance, its learner is ready" : "its owner leaves, its learner is ready";
    }

    /** Return whether the process is to have a copy for a move that is still to come. */
    boolean isLearner(int task, int process) {
        return learns[task] && board.goal[task] == process;
    }

    List<Outcome.Learner> learners() {
        return learners;
    }

    /** Return how many more copies may be made in this round. */
    long free() {
        return free;
    }

    /** Return whether something of the plan is still to come. */
    boolean isPending() {
        return pending;
    }
}
