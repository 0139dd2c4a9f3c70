package dev.streamapp.assignor.core;

import dev.streamapp.assignor.core.model.Announcement;
import dev.streamapp.assignor.core.model.AssignmentResult;
import dev.streamapp.assignor.core.model.Settings;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/**
 * Decides which planned moves happen in this round, and which copies learn for a later one.
 *
 * <p>A conservative process takes over nothing until all its learners are ready, and then everything in one step. A process that has just started
 * takes over nothing until it is warm.
 */
final class Takeover {

    private final AssignmentDraft draft;
    private final boolean frozen;
    private final boolean[] learns;
    private final List<AssignmentResult.Learner> learners = new ArrayList<>();
    private boolean pending;
    private long free;
    private long warmInMillis = Long.MAX_VALUE;
    private Optional<Long> firstWarmInMillis = Optional.empty();

    /**
     * Prepare for one group with its plan.
     *
     * @param frozen nothing moves
     */
    Takeover(AssignmentDraft draft, boolean frozen) {
        this.draft = draft;
        this.frozen = frozen;
        this.learns = new boolean[draft.tasks.length];
    }

    /** Make the moves of this round. */
    void make() {
        List<Integer> planned = planned();
        firstWarmInMillis = planned.stream().map(task -> draft.coldMillis(draft.target[task])).filter(cold -> cold > 0).min(Long::compare);
        List<Integer> ready = planned.stream().filter(task -> draft.isReady(task, draft.target[task])).toList();
        boolean[] waits = new boolean[draft.processes.length];
        // Copies that are ready and wait for others count: the limit is on copies that exist beside the standbys.
        free = Math.max(0, limit() - ready.size());
        planned.stream().filter(task -> !draft.isReady(task, draft.target[task])).limit(free).toList().forEach(task -> {
            free--;
            learn(task, false);
            waits[draft.target[task]] = !draft.group.announcement().eager();
        });
        for (int task : ready) {
            long cold = draft.coldMillis(draft.target[task]);
            if (frozen || waits[draft.target[task]] || cold > 0) {
                learn(task, true);
                warmInMillis = cold > 0 ? Math.min(warmInMillis, cold) : warmInMillis;
            } else {
                draft.setActive(task, draft.target[task], why(task));
            }
        }
        pending = planned.stream().anyMatch(task -> draft.active[task] != draft.target[task]);
    }

    private List<Integer> planned() {
        List<Integer> planned = new ArrayList<>();
        for (int task = 0; task < draft.tasks.length; task++) {
            if (draft.isStateful(task) && draft.target[task] != draft.active[task]) {
                planned.add(task);
            }
        }
        // Learners that have begun are kept before others begin.
        planned.sort(Comparator.comparing((Integer task) -> !draft.hasCopy(task, draft.target[task]))
            .thenComparingLong(task -> draft.lag(task, draft.target[task])));
        return planned;
    }

    private long limit() {
        Settings settings = draft.group.settings();
        boolean set = draft.group.announcement().state() == Announcement.State.SET;
        return set ? settings.leavingLearners() : settings.balanceLearners();
    }

    private void learn(int task, boolean ready) {
        learns[task] = true;
        learners.add(new AssignmentResult.Learner(draft.tasks[task].id(), draft.processes[draft.target[task]].id(), ready));
    }

    private String why(int task) {
        return draft.stays[draft.active[task]] ? "balance, its learner is ready" : "its owner leaves, its learner is ready";
    }

    /** Return whether the process gets a copy for a later move. */
    boolean isLearner(int task, int process) {
        return learns[task] && draft.target[task] == process;
    }

    List<AssignmentResult.Learner> learners() {
        return learners;
    }

    /** Return how many more copies may be made in this round. */
    long free() {
        return free;
    }

    /** Return in how many milliseconds the first process is warm for which a ready copy waits; the largest number if none does. */
    long warmInMillis() {
        return warmInMillis;
    }

    /** Return in how many milliseconds the first process is warm for which a move waits, its copy ready or not; empty if all are warm. */
    Optional<Long> firstWarmInMillis() {
        return firstWarmInMillis;
    }

    /** Return whether a part of the plan remains. */
    boolean isPending() {
        return pending;
    }
}
