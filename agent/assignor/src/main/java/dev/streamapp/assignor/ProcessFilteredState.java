package dev.streamapp.assignor;

import java.util.HashMap;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskInfo;

/** The group without the leaving processes, so that Kafka's utilities assign nothing to them. */
final class ProcessFilteredState implements ApplicationState {

    /** The high-availability assignor's defaults; the utilities have none and would do nothing. */
    private static final int TRAFFIC_COST = 10;

    private static final int NON_OVERLAP_COST = 1;

    private final ApplicationState whole;
    private final Set<ProcessId> staying;

    ProcessFilteredState(ApplicationState whole, Set<ProcessId> staying) {
        this.whole = whole;
        this.staying = staying;
    }

    @Override
    public Map<ProcessId, KafkaStreamsState> kafkaStreamsStates(boolean computeTaskLags) {
        Map<ProcessId, KafkaStreamsState> states = new HashMap<>(whole.kafkaStreamsStates(computeTaskLags));
        states.keySet().retainAll(staying);
        return states;
    }

    @Override
    public AssignmentConfigs assignmentConfigs() {
        AssignmentConfigs given = whole.assignmentConfigs();
        return new AssignmentConfigs(
            given.acceptableRecoveryLag(), given.maxWarmupReplicas(), given.numStandbyReplicas(), given.probingRebalanceIntervalMs(),
            given.rackAwareAssignmentTags(),
            OptionalInt.of(given.rackAwareTrafficCost().orElse(TRAFFIC_COST)),
            OptionalInt.of(given.rackAwareNonOverlapCost().orElse(NON_OVERLAP_COST)),
            given.rackAwareAssignmentStrategy());
    }

    @Override
    public Map<TaskId, TaskInfo> allTasks() {
        return whole.allTasks();
    }
}
