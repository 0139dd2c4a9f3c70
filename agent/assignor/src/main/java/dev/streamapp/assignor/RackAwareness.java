package dev.streamapp.assignor;

import dev.streamapp.assignor.core.model.AssignmentResult;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignmentUtils;
import org.apache.kafka.streams.processor.assignment.TaskAssignmentUtils.RackAwareOptimizationParams;

/**
 * Lets Kafka's utilities place tasks by rack: standbys, and actives that start without state.
 *
 * <p>The utilities do not know readiness, so they never get an active with state, and no learner.
 */
final class RackAwareness {

    private final AssignmentConfigs configs;
    private final ApplicationState staying;
    private final Set<ProcessId> stayers;
    private final GroupMapper members;

    RackAwareness(ApplicationState state, GroupMapper members, Set<ProcessId> stayers) {
        this.configs = state.assignmentConfigs();
        this.staying = new ProcessFilteredState(state, stayers);
        this.stayers = stayers;
        this.members = members;
    }

    /** Change the assignments where the user's settings ask for it. */
    void apply(Map<ProcessId, KafkaStreamsAssignment> assignments, AssignmentResult result) {
        boolean byRack = !StreamsConfig.RACK_AWARE_ASSIGNMENT_STRATEGY_NONE.equals(configs.rackAwareAssignmentStrategy());
        boolean byTag = !configs.rackAwareAssignmentTags().isEmpty() && configs.numStandbyReplicas() > 0;
        if (!byRack && !byTag) {
            return;
        }
        Map<ProcessId, KafkaStreamsAssignment> parts = new HashMap<>(assignments);
        parts.keySet().retainAll(stayers);
        Map<ProcessId, Set<TaskId>> learners = takeLearners(parts, result);
        if (byRack) {
            optimizeActives(parts);
        }
        if (byTag) {
            parts.values().forEach(RackAwareness::dropStandbys);
            TaskAssignmentUtils.defaultStandbyTaskAssignment(staying, parts);
        }
        if (byRack) {
            TaskAssignmentUtils.optimizeRackAwareStandbyTasks(RackAwareOptimizationParams.of(staying), parts);
        }
        learners.forEach((process, tasks) -> tasks.forEach(
            task -> parts.get(process).assignTask(new AssignedTask(task, AssignedTask.Type.STANDBY))));
    }

    private void optimizeActives(Map<ProcessId, KafkaStreamsAssignment> parts) {
        Set<TaskId> here = new HashSet<>();
        parts.values().forEach(part -> here.addAll(part.tasks().keySet()));
        TreeSet<TaskId> free = new TreeSet<>(members.fresh());
        free.retainAll(here);
        if (!free.isEmpty()) {
            // A standby of such a task may sit where its active goes, so the standbys are placed anew.
            parts.values().forEach(part -> free.forEach(task -> drop(part, task)));
            TaskAssignmentUtils.optimizeRackAwareActiveTasks(RackAwareOptimizationParams.of(staying).forTasks(free), parts);
            TaskAssignmentUtils.defaultStandbyTaskAssignment(new TaskFilteredState(staying, free), parts);
        }
    }

    private static void drop(KafkaStreamsAssignment part, TaskId task) {
        AssignedTask standby = new AssignedTask(task, AssignedTask.Type.STANDBY);
        if (standby.equals(part.tasks().get(task))) {
            part.removeTask(standby);
        }
    }

    private static void dropStandbys(KafkaStreamsAssignment part) {
        Set<TaskId> all = new HashSet<>(part.tasks().keySet());
        all.forEach(task -> drop(part, task));
    }

    private Map<ProcessId, Set<TaskId>> takeLearners(Map<ProcessId, KafkaStreamsAssignment> parts, AssignmentResult result) {
        Map<ProcessId, Set<TaskId>> learners = new HashMap<>();
        result.learners().forEach(learner -> {
            ProcessId process = members.process(learner.process());
            TaskId task = members.task(learner.task());
            drop(parts.get(process), task);
            learners.computeIfAbsent(process, none -> new HashSet<>()).add(task);
        });
        return learners;
    }
}
