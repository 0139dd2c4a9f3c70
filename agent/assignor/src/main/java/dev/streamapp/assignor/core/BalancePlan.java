package dev.streamapp.assignor.core;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;

/**
 * Chooses which stateful tasks go from heavily loaded processes to light ones until no single move helps by more than the tolerance.
 *
 * <p>Copies that exist come first, those that the round before began among them: a learner is not given up half-way while its move is of use.
 */
final class BalancePlan {

    private final Board board;
    private final long[] load;
    private long total;
    private long threads;

    BalancePlan(Board board) {
        this.board = board;
        this.load = board.load;
    }

    /** Let tasks aim away from processes that have too much. */
    void make() {
        for (int process = 0; process < board.processes.length; process++) {
            total += load[process];
            threads += board.threads(process);
        }
        followCopies();
        new Levelling(board, load, board::isStateful, board::aim).level();
    }

    private record Offer(int task, int to) {}

    /** The fullest gives first, so that nothing goes from a process that would have to be filled up again. */
    private void followCopies() {
        List<ArrayDeque<Offer>> byGiver = new ArrayList<>();
        for (int process = 0; process < board.processes.length; process++) {
            byGiver.add(new ArrayDeque<>());
        }
        offers().forEach(offer -> byGiver.get(board.goal[offer.task()]).add(offer));
        for (int from = fullest(byGiver); from != Board.NONE; from = fullest(byGiver)) {
            Offer offer = byGiver.get(from).poll();
            // What is refused once stays refused: givers only get emptier here, and takers fuller.
            if (board.goal[offer.task()] == from && hasRoom(offer.to(), offer.task())
                && board.relieves(load, from, offer.to(), board.tasks[offer.task()].weight())) {
                board.aim(offer.task(), offer.to());
            }
        }
    }

    private int fullest(List<ArrayDeque<Offer>> byGiver) {
        int best = Board.NONE;
        for (int process = 0; process < board.processes.length; process++) {
            if (!byGiver.get(process).isEmpty() && isAbove(process)
                && (best == Board.NONE || load[process] * board.threads(best) > load[best] * board.threads(process))) {
                best = process;
            }
        }
        return best;
    }

    private List<Offer> offers() {
        List<Offer> offers = new ArrayList<>();
        for (int task = 0; task < board.tasks.length; task++) {
            BitSet holders = board.isStateful(task) && isAbove(board.goal[task]) ? board.copies(task) : new BitSet();
            for (int process = holders.nextSetBit(0); process >= 0; process = holders.nextSetBit(process + 1)) {
                if (hasRoom(process, task)) {
                    offers.add(new Offer(task, process));
                }
            }
        }
        offers.sort(Comparator.comparingLong((Offer offer) -> board.isReady(offer.task(), offer.to()) ? -1 : board.lag(offer.task(), offer.to()))
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
        return load[process] * threads > total * board.threads(process);
    }

    private boolean hasRoom(int process, int task) {
        return (load[process] + board.tasks[task].weight()) * threads <= total * board.threads(process);
    }
}
