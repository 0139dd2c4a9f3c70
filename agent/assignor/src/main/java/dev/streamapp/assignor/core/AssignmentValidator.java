package dev.streamapp.assignor.core;

import dev.streamapp.assignor.core.model.AssignmentResult;
import dev.streamapp.assignor.core.model.Group;
import dev.streamapp.assignor.core.model.Task;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/** Finds faults of an assignment. An invalid one would stop the leader's thread, and then the next leader's. */
final class AssignmentValidator {

    private AssignmentValidator() {}

    /** Return the first fault as a sentence, or an empty string. */
    static String firstFault(Group group, Map<String, AssignmentResult.Placement> placements) {
        Map<String, Task> tasks = new HashMap<>();
        group.tasks().forEach(task -> tasks.put(task.id(), task));
        Set<String> processes = new HashSet<>();
        group.processes().forEach(process -> processes.add(process.id()));
        if (!processes.equals(placements.keySet())) {
            return "the processes of the assignment are not those of the group";
        }
        Set<String> active = new HashSet<>();
        for (AssignmentResult.Placement placement : placements.values()) {
            for (String id : placement.actives()) {
                if (!tasks.containsKey(id) || !active.add(id)) {
                    return "task " + id + " is unknown or active twice";
                }
            }
            for (String id : placement.standbys()) {
                if (!tasks.containsKey(id) || !tasks.get(id).stateful() || placement.actives().contains(id)) {
                    return "task " + id + " has a standby that cannot be";
                }
            }
        }
        return active.size() == tasks.size() || processes.isEmpty() ? "" : "a task is active nowhere";
    }
}
