package dev.streamapp.assignor;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskInfo;

/** The group with some of its tasks only, for Kafka's utilities: they have no other way to leave tasks alone. */
record TaskFilteredState(ApplicationState whole, Set<TaskId> tasks) implements ApplicationState {

    @Override
    public Map<ProcessId, KafkaStreamsState> kafkaStreamsStates(boolean computeTaskLags) {
        return whole.kafkaStreamsStates(computeTaskLags);
    }

    @Override
    public AssignmentConfigs assignmentConfigs() {
        return whole.assignmentConfigs();
    }

    @Override
    public Map<TaskId, TaskInfo> allTasks() {
        Map<TaskId, TaskInfo> some = new HashMap<>(whole.allTasks());
        some.keySet().retainAll(tasks);
        return some;
    }
}
