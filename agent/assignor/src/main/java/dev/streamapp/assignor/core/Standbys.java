package dev.streamapp.assignor.core;

import dev.streamapp.assignor.core.model.Outcome;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;

/** Places the configured standbys: ready copies first, the former owner's before others, then copies that are behind, then room. */
final class Standbys {

    private final Board board;
    private final Takeover takeover;
    private final List<List<Integer>> holders = new ArrayList<>();

    private final List<Outcome.Learner> learners = new ArrayList<>();
    private final BitSet planned = new BitSet();
    private final List<Step> extra = new ArrayList<>();

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

    /**
     * Let standbys go from processes with many copies to those with few: at once to a ready copy, else by a copy beside the standby.
     *
     * @param free how many such copies may be made
     * @return whether something of this is still to come
     */
    boolean level(long free) {
        boolean pending = false;
        for (int moves = 0; moves < board.tasks.length; moves++) {
            Step step = step();
            if (step == null) {
                break;
            }
            copies[step.from()]--;
            copies[step.to()]++;
            if (board.isReady(step.task(), step.to())) {
                holders.get(step.task()).remove((Integer) step.from());
                holders.get(step.task()).add(step.to());
            } else {
                pending = true;
                planned.set(step.task());
                if (learners.size() == free) {
                    break;
                }
                learners.add(new Outcome.Learner(board.tasks[step.task()].id(), board.processes[step.to()].id(), false));
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
        for (int task = 0; task < board.tasks.length; task++) {
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
        for (int process = 1; process < board.processes.length; process++) {
            if ((copies[process] + 1) * board.threads(least) < (copies[least] + 1) * board.threads(process)) {
                least = process;
            }
        }
        return least;
    }

    private boolean mayGo(int task, int from, int to) {
        boolean has = board.active[task] == to || board.goal[task] == to || holders.get(task).contains(to);
        return !has && !planned.get(task) && board.relieves(copies, from, to, 1);
    }

    private boolean isBetter(int task, int from, Step than) {
        int order = Boolean.compare(board.isReady(than.task(), than.to()), board.isReady(task, than.to()));
        if (order == 0) {
            order = Boolean.compare(board.hasCopy(than.task(), than.to()), board.hasCopy(task, than.to()));
        }
        if (order == 0) {
            order = Long.compare(copies[than.from()] * board.threads(from), copies[from] * board.threads(than.from()));
        }
        return order < 0;
    }

    List<Outcome.Learner> learners() {
        return learners;
    }

    /** Return the processes that get a standby of the task. */
    List<Integer> of(int task) {
        return holders.get(task);
    }
}
