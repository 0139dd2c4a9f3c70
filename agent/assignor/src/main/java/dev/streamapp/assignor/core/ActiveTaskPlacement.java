package dev.streamapp.assignor.core;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntPredicate;

/**
 * Gives every stateful task an active process now: the previous owner, or else the copy nearest to ready.
 *
 * <p>The order is: ready copies, previous owners, copies that are not ready, free capacity.
 */
final class ActiveTaskPlacement {

    /** A copy within so many times the limit is nearly ready. */
    private static final long NEARLY = 2;

    private final AssignmentDraft draft;
    private final boolean frozen;

    /**
     * Prepare for one group.
     *
     * @param frozen no task that has an owner leaves it
     */
    ActiveTaskPlacement(AssignmentDraft draft, boolean frozen) {
        this.draft = draft;
        this.frozen = frozen;
    }

    /** Give every stateful task an active process and let it aim there. */
    void find() {
        List<Integer> orphans = new ArrayList<>();
        for (int task = 0; task < draft.tasks.length; task++) {
            if (!draft.isStateful(task)) {
                continue;
            }
            if (draft.owner[task] == AssignmentDraft.NONE) {
                orphans.add(task);
            } else if (!frozen && isRestoring(task)) {
                rescue(task);
            } else {
                settle(task, draft.owner[task], "");
            }
        }
        // Tasks without a choice come first, so that the loads are known for the others.
        orphans.removeIf(task -> placedWith(task, process -> draft.stays[process] && draft.isReady(task, process), "orphan, to a ready copy"));
        // A learner just beside the limit: the leaving process has revoked the task already, so to give it back would cost two gaps.
        orphans.removeIf(task -> isNearlyReady(task) && placedWithNearest(task));
        // A process that leaves but has the state is better than one that would restore for minutes: it still works, and a learner follows.
        orphans.removeIf(task -> placedWith(task, process -> draft.isReady(task, process), "orphan, only a leaving process has its state"));
        orphans.removeIf(this::placedWithNearest);
        orphans.forEach(task -> placedWith(task, process -> draft.stays[process], "orphan, by room"));
    }

    private boolean isRestoring(int task) {
        int owner = draft.owner[task];
        return draft.lagIsKnown(task, owner) && !draft.isReady(task, owner);
    }

    /** No process runs the task while its owner restores it, so a ready copy takes over at once. */
    private void rescue(int task) {
        IntPredicate able = process -> draft.stays[process] && draft.hasCopy(task, process) && draft.isReady(task, process);
        int process = draft.roomiest(task, draft.load, able);
        if (process == AssignmentDraft.NONE) {
            settle(task, draft.owner[task], "");
        } else {
            settle(task, process, "its owner restores, a ready copy is here");
        }
    }

    private boolean placedWith(int task, IntPredicate may, String why) {
        int process = draft.roomiest(task, draft.load, may);
        if (process != AssignmentDraft.NONE) {
            settle(task, process, why);
        }
        return process != AssignmentDraft.NONE;
    }

    private boolean isNearlyReady(int task) {
        long lag = nearest(task);
        return !frozen && lag < Long.MAX_VALUE && lag / NEARLY <= draft.group.settings().acceptableLag();
    }

    /** Return the lag of the nearest copy that stays; the largest number if there is none or its lag is unknown. */
    private long nearest(int task) {
        return draft.copies(task).stream().filter(process -> draft.stays[process]).mapToLong(process -> draft.lag(task, process)).min()
            .orElse(Long.MAX_VALUE);
    }

    private boolean placedWithNearest(int task) {
        long least = nearest(task);
        IntPredicate nearest = process -> draft.stays[process] && draft.hasCopy(task, process) && draft.lag(task, process) == least;
        return placedWith(task, nearest, "orphan, to the copy nearest to ready");
    }

    private void settle(int task, int process, String why) {
        draft.setActive(task, process, why);
        draft.setTarget(task, process);
    }
}
