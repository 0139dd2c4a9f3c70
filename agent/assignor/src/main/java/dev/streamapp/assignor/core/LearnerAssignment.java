package dev.streamapp.assignor.core;

import dev.streamapp.assignor.core.model.Announcement;
import dev.streamapp.assignor.core.model.Group;
import dev.streamapp.assignor.core.model.Outcome;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Makes an assignment that moves a stateful task only behind a copy that is ready.
 *
 * <p>A total function: it returns a valid assignment for every input and throws for none. All it needs is in what the members show, so a
 * new leader goes on where the last one stopped.
 */
public final class LearnerAssignment {

    /** The members ask a little later than the announcement expires, so that it surely has. */
    private static final long AFTER_EXPIRY_MILLIS = 1_000;

    private LearnerAssignment() {}

    /**
     * Assign every task.
     *
     * @return a valid assignment; where the assignor's own one is none, or something went wrong, the previous owners with placed orphans
     */
    public static Outcome assign(Group group) {
        Group asked = group == null ? new Group(List.of(), List.of(), false, null, null) : group;
        try {
            Outcome outcome = decide(asked);
            String fault = Validity.fault(asked, outcome.placements());
            return fault.isEmpty() ? outcome : Fallback.of(asked, fault);
        } catch (RuntimeException | StackOverflowError fault) {
            return Fallback.of(asked, fault.toString());
        }
    }

    private static Outcome decide(Group group) {
        Board board = new Board(group);
        if (board.processes.length == 0) {
            return new Outcome(Map.of(), List.of(), List.of(), Optional.empty(), "");
        }
        Announcement.State state = group.announcement().state();
        boolean frozen = state == Announcement.State.UNKNOWN || !group.lagsKnown();
        boolean balanced = state == Announcement.State.EMPTY && !frozen;
        new Owners(board, frozen).find();
        if (state == Announcement.State.SET) {
            new LeavingPlan(board).make();
        } else if (balanced) {
            new BalancePlan(board).make();
        }
        Takeover takeover = new Takeover(board, frozen);
        takeover.make();
        new Stateless(board).place(frozen, balanced);
        Standbys standbys = new Standbys(board, takeover);
        boolean pending = takeover.isPending();
        if (frozen) {
            standbys.keepAll();
        } else {
            standbys.choose();
            pending |= balanced && group.settings().levelsStandbys() && standbys.level(takeover.free());
        }
        List<Outcome.Learner> learners = new ArrayList<>(takeover.learners());
        learners.addAll(standbys.learners());
        return new Outcome(placements(board, takeover, standbys), board.moves, learners, followUp(group, pending), "");
    }

    private static Map<String, Outcome.Placement> placements(Board board, Takeover takeover, Standbys standbys) {
        Map<String, Outcome.Placement> placements = new HashMap<>();
        Outcome.Placement[] byProcess = new Outcome.Placement[board.processes.length];
        for (int process = 0; process < byProcess.length; process++) {
            byProcess[process] = new Outcome.Placement(new HashSet<>(), new HashSet<>());
            placements.put(board.processes[process].id(), byProcess[process]);
        }
        for (int task = 0; task < board.tasks.length; task++) {
            String id = board.tasks[task].id();
            byProcess[board.active[task]].actives().add(id);
            standbys.of(task).forEach(process -> byProcess[process].standbys().add(id));
            if (takeover.isLearner(task, board.goal[task])) {
                byProcess[board.goal[task]].standbys().add(id);
            }
        }
        return placements;
    }

    private static Optional<Outcome.FollowUp> followUp(Group group, boolean pending) {
        long soon = group.settings().followUpMillis();
        Announcement announcement = group.announcement();
        if (announcement.state() == Announcement.State.UNKNOWN) {
            return Optional.of(new Outcome.FollowUp(soon, Outcome.Purpose.UNKNOWN));
        }
        if (pending || !group.lagsKnown()) {
            return Optional.of(new Outcome.FollowUp(soon, Outcome.Purpose.LEARNING));
        }
        if (announcement.state() == Announcement.State.SET) {
            long expires = announcement.expiresInMillis();
            long millis = expires < 0 ? soon : Math.min(expires, Integer.MAX_VALUE) + AFTER_EXPIRY_MILLIS;
            return Optional.of(new Outcome.FollowUp(millis, Outcome.Purpose.EXPIRY));
        }
        return Optional.empty();
    }
}
