package dev.streamapp.assignor.core;

import dev.streamapp.assignor.core.model.AssignmentResult;
import dev.streamapp.assignor.core.model.Group;
import dev.streamapp.assignor.core.model.Process;
import dev.streamapp.assignor.core.model.Task;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** The assignment that cannot fail. Each owner keeps its tasks, and the processes with the fewest tasks get those without an owner. */
final class FallbackAssignment {

    /** A persistent fault must not cause a rebalance at every turn. */
    private static final long PATIENCE = 6;

    private FallbackAssignment() {}

    /** Return the previous owners plus placed orphans. Of the copies that a stateful task had, the configured number and one more stay. */
    static AssignmentResult of(Group group, String why) {
        Map<String, Set<String>> actives = new HashMap<>();
        group.processes().forEach(process -> actives.put(process.id(), new HashSet<>()));
        List<AssignmentResult.Move> moves = new ArrayList<>();
        List<Task> orphans = new ArrayList<>();
        for (Task task : group.tasks()) {
            Optional<Process> owner = group.processes().stream().filter(process -> process.actives().contains(task.id())).findFirst();
            owner.ifPresentOrElse(process -> actives.get(process.id()).add(task.id()), () -> orphans.add(task));
        }
        for (Task task : group.processes().isEmpty() ? List.<Task>of() : orphans) {
            String to = place(group, task, actives);
            actives.get(to).add(task.id());
            moves.add(new AssignmentResult.Move(task.id(), "", to, "orphan, placed without a plan"));
        }
        Optional<AssignmentResult.FollowUp> followUp = group.processes().isEmpty() ? Optional.empty()
            : Optional.of(new AssignmentResult.FollowUp(PATIENCE * group.settings().followUpMillis(), AssignmentResult.Purpose.LEARNING));
        return new AssignmentResult(placements(group, actives), moves, List.of(), followUp, why);
    }

    private static String place(Group group, Task task, Map<String, Set<String>> actives) {
        Process best = group.processes().get(0);
        for (Process process : group.processes()) {
            boolean holds = process.standbys().contains(task.id());
            boolean bestHolds = best.standbys().contains(task.id());
            if (holds && !bestHolds || holds == bestHolds && actives.get(process.id()).size() < actives.get(best.id()).size()) {
                best = process;
            }
        }
        return best.id();
    }

    private static Map<String, AssignmentResult.Placement> placements(Group group, Map<String, Set<String>> actives) {
        Map<String, AssignmentResult.Placement> placements = new HashMap<>();
        group.processes().forEach(process -> placements.put(process.id(), new AssignmentResult.Placement(actives.get(process.id()), new HashSet<>())));
        for (Task task : group.tasks()) {
            if (task.stateful()) {
                group.processes().stream().filter(process -> holdsBeside(process, task, actives))
                    .sorted(Comparator.comparingLong(process -> lag(process, task))).limit(group.settings().standbys() + 1L)
                    .forEach(process -> placements.get(process.id()).standbys().add(task.id()));
            }
        }
        return placements;
    }

    private static boolean holdsBeside(Process process, Task task, Map<String, Set<String>> actives) {
        boolean had = process.standbys().contains(task.id()) || process.actives().contains(task.id());
        return had && !actives.get(process.id()).contains(task.id());
    }

    private static long lag(Process process, Task task) {
        long lag = process.lags().getOrDefault(task.id(), Long.MAX_VALUE);
        return lag == Process.RUNNING ? 0 : lag < 0 ? Long.MAX_VALUE : lag;
    }
}
