package dev.streamapp.assignor.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.streamapp.assignor.core.model.Announcement;
import dev.streamapp.assignor.core.model.AssignmentResult;
import dev.streamapp.assignor.core.model.Group;
import dev.streamapp.assignor.core.model.Task;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/** Checks every assignment against the true state of the model. */
final class InvariantChecker {

    private InvariantChecker() {}

    static void check(Cluster cluster, Group view, AssignmentResult result) {
        assertEquals("", result.fellBack());
        assertEquals(cluster.nodes.keySet(), result.placements().keySet());
        Map<String, String> assigned = new HashMap<>();
        result.placements().forEach((process, placement) -> {
            placement.actives().forEach(task -> assertEquals(null, assigned.put(task, process), "two owners of " + task));
            Set<String> both = new HashSet<>(placement.actives());
            both.retainAll(placement.standbys());
            assertEquals(Set.of(), both, "two copies in " + process);
        });
        Map<String, String> owners = cluster.owners();
        for (Task task : cluster.tasks) {
            String to = assigned.get(task.id());
            assertTrue(to != null, task.id() + " is active nowhere");
            if (task.stateful() && !to.equals(owners.get(task.id()))) {
                checkMove(cluster, view, task, owners.get(task.id()), to);
            }
        }
    }

    private static void checkMove(Cluster cluster, Group view, Task task, String from, String to) {
        boolean ready = cluster.isReady(to, task.id());
        assertTrue(from == null || ready, () -> task + " moved from " + from + " to " + to + ", which is not ready");
        assertTrue(from == null || view.announcement().state() != Announcement.State.UNKNOWN, () -> task + " moved while nothing is known");
        boolean warm = cluster.nodes.keySet().stream().anyMatch(process -> cluster.isReady(process, task.id()));
        assertTrue(ready || !warm || isNearlyReady(cluster, view, to, task.id()), () -> "orphan " + task + " went to the cold " + to);
        if (leaves(view, to)) {
            boolean warmStays = cluster.nodes.keySet().stream().anyMatch(process -> !leaves(view, process) && cluster.isReady(process, task.id()));
            boolean allLeave = cluster.nodes.keySet().stream().allMatch(process -> leaves(view, process));
            assertTrue(allLeave || ready && !warmStays && from == null, () -> task + " went to " + to + ", which leaves");
        }
    }

    /** A staying copy within twice the limit is preferred to a ready one of a leaving process. */
    private static boolean isNearlyReady(Cluster cluster, Group view, String to, String task) {
        return !leaves(view, to) && cluster.lag(to, task) <= 2 * cluster.settings.acceptableLag() + 1;
    }

    static boolean leaves(Group view, String process) {
        return view.announcement().state() == Announcement.State.SET && view.announcement().leaving().contains(process);
    }

    /** No single stateful task is better off elsewhere, by more than the tolerance. */
    static void checkBalance(Cluster cluster) {
        int slack = cluster.settings.tolerance() - 1;
        for (String from : cluster.nodes.keySet()) {
            for (Task task : cluster.tasks) {
                for (String to : cluster.nodes.keySet()) {
                    if (!from.equals(to) && task.stateful() && cluster.nodes.get(from).actives.contains(task.id())) {
                        double before = (cluster.load(from) - task.weight()) / (double) cluster.nodes.get(from).threads;
                        double after = (cluster.load(to) + task.weight()) / (double) cluster.nodes.get(to).threads + slack;
                        assertTrue(before < after, () -> task + " would be better off on " + to + " than on " + from);
                    }
                }
            }
        }
    }
}
