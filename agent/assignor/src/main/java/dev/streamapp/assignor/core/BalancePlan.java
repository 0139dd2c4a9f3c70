package dev.streamapp.assignor.core;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;

/**
 * Chooses stateful tasks that move from heavily loaded processes to light ones, until no single move helps by more than the tolerance.
 *
 * <p>Existing copies come first, also those that the last round started. So a learner continues while its move is useful.
 */
final class BalancePlan {

    private final AssignmentDraft draft;
    private final long[] load;
    private long total;
    private long threads;

    BalancePlan(AssignmentDraft draft) {
        this.draft = draft;
        this.load = draft.load;
    }

    /** Set new targets for tasks of overloaded processes. */
    void make() {
        for (int process = 0; process < draft.processes.length; process++) {
            total += load[process];
            threads += draft.threads(process);
        }
        followCopies();
        new TaskBalancer(draft, load, draft::isStateful, draft::setTarget).balance();
    }

    private record Offer(int task, int to) {}

    /** The fullest gives first, so that nothing goes from a process that would have to be filled up again. */
    private void followCopies() {
        List<ArrayDeque<Offer>> byGiver = new ArrayList<>();
        for (int process = 0; process < draft.processes.length; process++) {
            byGiver.add(new ArrayDeque<>());
        }
        offers().forEach(offer -> byGiver.get(draft.target[offer.task()]).add(offer));
        for (int from = fullest(byGiver); from != AssignmentDraft.NONE; from = fullest(byGiver)) {
            Offer offer = byGiver.get(from).poll();
            // What is refused once stays refused: givers only get emptier here, and takers fuller.
            if (draft.target[offer.task()] == from && hasRoom(offer.to(), offer.task())
                && draft.relieves(load, from, offer.to(), draft.tasks[offer.task()].weight())) {
                draft.setTarget(offer.task(), offer.to());
            }
        }
    }

    private int fullest(List<ArrayDeque<Offer>> byGiver) {
        int best = AssignmentDraft.NONE;
        for (int process = 0; process < draft.processes.length; process++) {
            if (!byGiver.get(process).isEmpty() && isAbove(process)
                && (best == AssignmentDraft.NONE || load[process] * draft.threads(best) > load[best] * draft.threads(process))) {
                best = process;
            }
        }
        return best;
    }

    private List<Offer> offers() {
        List<Offer> offers = new ArrayList<>();
        for (int task = 0; task < draft.tasks.length; task++) {
            BitSet holders = draft.isStateful(task) && isAbove(draft.target[task]) ? draft.copies(task) : new BitSet();
            for (int process = holders.nextSetBit(0); process >= 0; process = holders.nextSetBit(process + 1)) {
                if (hasRoom(process, task)) {
                    offers.add(new Offer(task, process));
                }
            }
        }
        offers.sort(Comparator.comparingLong((Offer offer) -> draft.isReady(offer.task(), offer.to()) ? -1 : draft.lag(offer.task(), offer.to()))
            .thenComparingInt(Offer::task)
            .thenComparingInt(Offer::to));
        return offers;
    }

    /**
     * Return whether the process has more than its fair share.
     *
     * <p>Only such processes give, and only those take that stay within theirs: otherwise a task would go through a process in the middle,
     * which happens to hold a copy, where one move would do.
     */
    private boolean isAbove(int process) {
        return load[process] * threads > total * draft.threads(process);
    }

    private boolean hasRoom(int process, int task) {
        return (load[process] + draft.tasks[task].weight()) * threads <= total * draft.threads(process);
    }
}
