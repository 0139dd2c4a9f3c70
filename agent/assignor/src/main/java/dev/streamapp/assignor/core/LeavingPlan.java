package dev.streamapp.assignor.core;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Chooses the processes that take over the stateful tasks of leaving ones: ready copies first, then other copies, then free capacity.
 *
 * <p>Each round repeats the choice. It must give the same result while only lags change. So a copy's process is refused only if it would end
 * above the level of an even distribution, and learners count as copies in the next round.
 */
final class LeavingPlan {

    private final AssignmentDraft draft;

    /** The level as a fraction: load and threads of the fullest process of an even distribution. */
    private long fullest;

    private long fullestThreads = 1;
    private long slack;

    LeavingPlan(AssignmentDraft draft) {
        this.draft = draft;
    }

    /** Set a staying process as target of every stateful task of a leaving one. */
    void make() {
        List<Integer> leaving = new ArrayList<>();
        for (int task = 0; task < draft.tasks.length; task++) {
            if (draft.isStateful(task) && !draft.stays[draft.active[task]]) {
                leaving.add(task);
            }
        }
        fill(leaving);
        List<Integer> scarceFirst = new ArrayList<>(leaving);
        scarceFirst.sort(Comparator.comparingLong(this::choices));
        scarceFirst.removeIf(task -> chooseTarget(task, true));
        leaving.retainAll(new java.util.HashSet<>(scarceFirst));
        leaving.removeIf(task -> chooseTarget(task, false));
        leaving.forEach(task -> draft.setTarget(task, draft.roomiest(task, draft.load, process -> draft.stays[process])));
    }

    private long choices(int task) {
        return draft.copies(task).stream().filter(process -> draft.stays[process] && draft.isReady(task, process)).count();
    }

    /** Find the level by distributing the tasks by room alone. */
    private void fill(List<Integer> leaving) {
        long[] loads = draft.load.clone();
        for (int task : leaving) {
            int process = draft.roomiest(task, loads, candidate -> draft.stays[candidate]);
            loads[process] += draft.tasks[task].weight();
            if (loads[process] * fullestThreads > fullest * draft.threads(process)) {
                fullest = loads[process];
                fullestThreads = draft.threads(process);
            }
            slack = Math.max(slack, draft.tasks[task].weight() - 1L);
        }
    }

    private boolean chooseTarget(int task, boolean ready) {
        int best = AssignmentDraft.NONE;
        for (int process = draft.copies(task).nextSetBit(0); process >= 0; process = draft.copies(task).nextSetBit(process + 1)) {
            if (draft.stays[process] && fits(task, process) && draft.isReady(task, process) == ready
                && (best == AssignmentDraft.NONE || isBetter(task, process, best, ready))) {
                best = process;
            }
        }
        if (best != AssignmentDraft.NONE) {
            draft.setTarget(task, best);
        }
        return best != AssignmentDraft.NONE;
    }

    private boolean fits(int task, int process) {
        return (draft.load[process] + draft.tasks[task].weight() - slack) * fullestThreads <= fullest * draft.threads(process);
    }

    private boolean isBetter(int task, int process, int than, boolean ready) {
        if (ready) {
            return draft.load[process] * draft.threads(than) < draft.load[than] * draft.threads(process);
        }
        return draft.lag(task, process) < draft.lag(task, than);
    }
}
