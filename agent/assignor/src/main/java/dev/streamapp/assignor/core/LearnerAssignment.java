package dev.streamapp.assignor.core;

import dev.streamapp.assignor.core.model.Announcement;
import dev.streamapp.assignor.core.model.AssignmentResult;
import dev.streamapp.assignor.core.model.Group;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Makes an assignment that moves a stateful task only to a process with a ready copy.
 *
 * <p>It is a total function: it returns a valid assignment for every input and never throws. It needs only the state of the members,
 * so a new leader continues where the last one stopped.
 */
public final class LearnerAssignment {

    /** The follow-up comes a little after the announcement expires. */
    private static final long AFTER_EXPIRY_MILLIS = 1_000;

    private LearnerAssignment() {}

    /**
     * Assign every task.
     *
     * @return a valid assignment; after a fault, the previous owners with placed orphans
     */
    public static AssignmentResult assign(Group group) {
        Group asked = group == null ? new Group(List.of(), List.of(), false, null, null) : group;
        try {
            AssignmentResult result = decide(asked);
            String fault = AssignmentValidator.firstFault(asked, result.placements());
            return fault.isEmpty() ? result : FallbackAssignment.of(asked, fault);
        } catch (RuntimeException | StackOverflowError fault) {
            return FallbackAssignment.of(asked, fault.toString());
        }
    }

    private static AssignmentResult decide(Group group) {
        AssignmentDraft draft = new AssignmentDraft(group);
        if (draft.processes.length == 0) {
            return new AssignmentResult(Map.of(), List.of(), List.of(), Optional.empty(), "");
        }
        Announcement.State state = group.announcement().state();
        boolean frozen = state == Announcement.State.UNKNOWN || !group.lagsKnown();
        boolean balanced = state == Announcement.State.EMPTY && !frozen;
        new ActiveTaskPlacement(draft, frozen).find();
        if (state == Announcement.State.SET) {
            new LeavingPlan(draft).make();
        } else if (balanced) {
            new BalancePlan(draft).make();
        }
        Takeover takeover = new Takeover(draft, frozen);
        takeover.make();
        new StatelessTaskPlacement(draft).place(frozen, balanced);
        StandbyTaskPlacement standbys = new StandbyTaskPlacement(draft, takeover);
        boolean pending = takeover.isPending();
        if (frozen) {
            standbys.keepNearest();
        } else {
            standbys.choose();
            pending |= balanced && group.settings().levelsStandbys() && standbys.balance(takeover.free());
        }
        List<AssignmentResult.Learner> learners = new ArrayList<>(takeover.learners());
        learners.addAll(standbys.learners());
        return new AssignmentResult(placements(draft, takeover, standbys), draft.moves, learners,
            followUp(group, pending, takeover.warmInMillis()), "", takeover.firstWarmInMillis());
    }

    private static Map<String, AssignmentResult.Placement> placements(AssignmentDraft draft, Takeover takeover, StandbyTaskPlacement standbys) {
        Map<String, AssignmentResult.Placement> placements = new HashMap<>();
        AssignmentResult.Placement[] byProcess = new AssignmentResult.Placement[draft.processes.length];
        for (int process = 0; process < byProcess.length; process++) {
            byProcess[process] = new AssignmentResult.Placement(new HashSet<>(), new HashSet<>());
            placements.put(draft.processes[process].id(), byProcess[process]);
        }
        for (int task = 0; task < draft.tasks.length; task++) {
            String id = draft.tasks[task].id();
            byProcess[draft.active[task]].actives().add(id);
            standbys.of(task).forEach(process -> byProcess[process].standbys().add(id));
            if (takeover.isLearner(task, draft.target[task])) {
                byProcess[draft.target[task]].standbys().add(id);
            }
        }
        return placements;
    }

    private static Optional<AssignmentResult.FollowUp> followUp(Group group, boolean pending, long warmInMillis) {
        long soon = Math.min(group.settings().followUpMillis(), warmInMillis);
        Announcement announcement = group.announcement();
        if (announcement.state() == Announcement.State.UNKNOWN) {
            return Optional.of(new AssignmentResult.FollowUp(soon, AssignmentResult.Purpose.UNKNOWN));
        }
        if (pending || !group.lagsKnown()) {
            return Optional.of(new AssignmentResult.FollowUp(soon, AssignmentResult.Purpose.LEARNING));
        }
        if (announcement.state() == Announcement.State.SET) {
            long expires = announcement.expiresInMillis();
            long millis = expires < 0 ? soon : Math.min(expires, Integer.MAX_VALUE) + AFTER_EXPIRY_MILLIS;
            return Optional.of(new AssignmentResult.FollowUp(millis, AssignmentResult.Purpose.EXPIRY));
        }
        return Optional.empty();
    }
}
