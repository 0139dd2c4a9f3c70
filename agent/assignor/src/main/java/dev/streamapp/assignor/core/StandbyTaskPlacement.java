package dev.streamapp.assignor.core;

import dev.streamapp.assignor.core.model.AssignmentResult;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;

/** Places the configured standbys: first the former owner, then other ready copies, then copies with a lag, then free capacity. */
final class StandbyTaskPlacement {

    private final AssignmentDraft draft;
    private final Takeover takeover;
    private final List<List<Integer>> holders = new ArrayList<>();

    private final List<AssignmentResult.Learner> learners = new ArrayList<>();
    private final BitSet planned = new BitSet();
    private final List<Step> extra = new ArrayList<>();

    /** By process, how many copies it has with what was placed so far. */
    private final long[] copies;

    StandbyTaskPlacement(AssignmentDraft draft, Takeover takeover) {
        this.draft = draft;
        this.takeover = takeover;
        this.copies = new long[draft.processes.length];
    }

    /** Choose the configured number of standbys for every stateful task, as far as there are processes that stay. */
    void choose() {
        for (int task = 0; task < draft.tasks.length; task++) {
            copies[draft.target[task]]++;
        }
        for (int task = 0; task < draft.tasks.length; task++) {
            List<Integer> chosen = new ArrayList<>();
            if (draft.isStateful(task)) {
                fill(task, chosen);
            }
            holders.add(chosen);
        }
    }

    /**
     * Keep the nearest copies of each task: the configured number, and one that may be a learner. Without a plan nothing tells a learner from
     * another copy, nor from an old directory that no process feeds. Each kept copy restores, so to keep all of them could start restores all over
     * the group.
     */
    void keepNearest() {
        long most = draft.group.settings().standbys() + 1L;
        for (int task = 0; task < draft.tasks.length; task++) {
            int at = task;
            List<Integer> kept = new ArrayList<>();
            if (draft.isStateful(task)) {
                draft.copies(task).stream().filter(process -> process != draft.active[at] && draft.stays[process]).boxed()
                    .sorted(Comparator.comparingLong(process -> draft.lag(at, process))).limit(most).forEach(kept::add);
            }
            holders.add(kept);
        }
    }

    private void fill(int task, List<Integer> chosen) {
        int wanted = draft.group.settings().standbys();
        boolean borrows = isBorrowed(task);
        for (int slot = 0; slot < wanted; slot++) {
            int process = next(task, chosen);
            if (process == AssignmentDraft.NONE || borrows && !draft.hasCopy(task, process)) {
                return;
            }
            chosen.add(process);
            copies[process]++;
        }
    }

    private int next(int task, List<Integer> chosen) {
        Comparator<Integer> order = Comparator.comparingInt((Integer process) -> rank(task, process))
            .thenComparingLong(process -> rank(task, process) == BEHIND ? draft.lag(task, process) : 0);
        int best = AssignmentDraft.NONE;
        for (int process = 0; process < draft.processes.length; process++) {
            if (draft.stays[process] && process != draft.active[task] && !chosen.contains(process)
                && !takeover.isLearner(task, process)) {
                int compared = best == AssignmentDraft.NONE ? -1 : order.compare(process, best);
                if (compared < 0 || compared == 0 && copies[process] * draft.threads(best) < copies[best] * draft.threads(process)) {
                    best = process;
                }
            }
        }
        return best;
    }

    /**
     * Return whether a standby has become the learner of an owner that stays.
     *
     * <p>That owner will hold the standby after the move, so no process restores another copy until then.
     */
    private boolean isBorrowed(int task) {
        int target = draft.target[task];
        return takeover.isLearner(task, target) && draft.hasCopy(task, target) && draft.stays[draft.active[task]];
    }

    private static final int FORMER = 0;
    private static final int READY = 1;
    private static final int BEHIND = 2;
    private static final int WITHOUT = 3;

    private int rank(int task, int process) {
        if (!draft.hasCopy(task, process)) {
            return WITHOUT;
        }
        if (!draft.isReady(task, process)) {
            return BEHIND;
        }
        return draft.owner[task] == process ? FORMER : READY;
    }

    /**
     * Let standbys go from processes with many copies to those with few: at once to a ready copy, else by a copy beside the standby.
     *
     * @param free how many such copies may be made
     * @return whether a part of this remains
     */
    boolean balance(long free) {
        boolean pending = false;
        for (int moves = 0; moves < draft.tasks.length; moves++) {
            Step step = step();
            if (step == null) {
                break;
            }
            copies[step.from()]--;
            copies[step.to()]++;
            if (draft.isReady(step.task(), step.to())) {
                holders.get(step.task()).remove((Integer) step.from());
                holders.get(step.task()).add(step.to());
            } else {
                pending = true;
                planned.set(step.task());
                if (learners.size() == free) {
                    break;
                }
                learners.add(new AssignmentResult.Learner(draft.tasks[step.task()].id(), draft.processes[step.to()].id(), false));
                extra.add(step);
            }
        }
        extra.forEach(step -> holders.get(step.task()).add(step.to()));
        return pending;
    }

    private record Step(int task, int from, int to) {}

    private Step step() {
        int to = least();
        Step best = null;
        for (int task = 0; task < draft.tasks.length; task++) {
            for (int from : holders.get(task)) {
                if (mayGo(task, from, to) && (best == null || isBetter(task, from, best))) {
                    best = new Step(task, from, to);
                }
            }
        }
        return best;
    }

    private int least() {
        int least = 0;
        for (int process = 1; process < draft.processes.length; process++) {
            if ((copies[process] + 1) * draft.threads(least) < (copies[least] + 1) * draft.threads(process)) {
                least = process;
            }
        }
        return least;
    }

    private boolean mayGo(int task, int from, int to) {
        boolean has = draft.active[task] == to || draft.target[task] == to || holders.get(task).contains(to);
        return !has && !planned.get(task) && draft.relieves(copies, from, to, 1);
    }

    private boolean isBetter(int task, int from, Step than) {
        int order = Boolean.compare(draft.isReady(than.task(), than.to()), draft.isReady(task, than.to()));
        if (order == 0) {
            order = Boolean.compare(draft.hasCopy(than.task(), than.to()), draft.hasCopy(task, than.to()));
        }
        if (order == 0) {
            order = Long.compare(copies[than.from()] * draft.threads(from), copies[from] * draft.threads(than.from()));
        }
        return order < 0;
    }

    List<AssignmentResult.Learner> learners() {
        return learners;
    }

    /** Return the processes that get a standby of the task. */
    List<Integer> of(int task) {
        return holders.get(task);
    }
}
