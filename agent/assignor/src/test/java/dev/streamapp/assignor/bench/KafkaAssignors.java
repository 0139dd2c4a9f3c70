package dev.streamapp.assignor.bench;

import dev.streamapp.assignor.core.model.AssignmentResult;
import dev.streamapp.assignor.core.model.Group;
import dev.streamapp.assignor.core.model.Process;
import dev.streamapp.assignor.core.model.Task;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask.Type;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.DefaultKafkaStreamsState;
import org.apache.kafka.streams.processor.internals.assignment.DefaultTaskInfo;
import org.apache.kafka.streams.processor.internals.assignment.DefaultTaskTopicPartition;
import org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor;

/** Kafka's own assignors, with the input and output of ours. */
public final class KafkaAssignors {

    private KafkaAssignors() {}

    private static ProcessId process(String id) {
        return new ProcessId(UUID.fromString(id));
    }

    private static AssignmentConfigs configs(Group group) {
        return new AssignmentConfigs(group.settings().acceptableLag(), group.settings().balanceLearners(), group.settings().standbys(), 600_000L,
            List.of(), OptionalInt.of(1), OptionalInt.of(10), "none");
    }

    private static Set<TaskId> ids(Set<String> tasks) {
        return tasks.stream().map(TaskId::parse).collect(Collectors.toSet());
    }

    private static Map<TaskId, Long> lags(Process process) {
        Map<TaskId, Long> lags = new HashMap<>();
        process.lags().forEach((task, lag) -> lags.put(TaskId.parse(task), lag));
        return lags;
    }

    /** Return what the default assignor answers. */
    public static AssignmentResult highAvailability(Group group) {
        Map<ProcessId, ClientState> clients = new HashMap<>();
        group.processes().forEach(process -> clients.put(process(process.id()), new ClientState(
            ids(process.actives()), ids(process.standbys()), lags(process), Map.of(), process.threads(), process(process.id()))));
        Set<TaskId> tasks = group.tasks().stream().map(task -> TaskId.parse(task.id())).collect(Collectors.toSet());
        AssignmentConfigs configs = configs(group);
        RackAwareTaskAssignor racks = new RackAwareTaskAssignor(
            Cluster.empty(), Map.of(), Map.of(), Map.of(), Map.of(), null, configs, Time.SYSTEM);
        boolean probes = new HighAvailabilityTaskAssignor().assign(clients, tasks, new HashSet<>(tasks), racks, configs);
        Map<String, AssignmentResult.Placement> placements = new HashMap<>();
        clients.forEach((id, client) -> placements.put(id.id().toString(),
            new AssignmentResult.Placement(names(client.activeTasks()), names(client.standbyTasks()))));
        return result(placements, probes);
    }

    /** Return what the sticky assignor answers. */
    public static AssignmentResult sticky(Group group) {
        Map<String, AssignmentResult.Placement> placements = new HashMap<>();
        new StickyTaskAssignor().assign(new State(group)).assignment().forEach(part -> {
            AssignmentResult.Placement placement = new AssignmentResult.Placement(new HashSet<>(), new HashSet<>());
            part.tasks().values().forEach(task ->
                (task.type() == Type.ACTIVE ? placement.actives() : placement.standbys()).add(task.id().toString()));
            placements.put(part.processId().id().toString(), placement);
        });
        return result(placements, false);
    }

    private static Set<String> names(Set<TaskId> tasks) {
        return tasks.stream().map(TaskId::toString).collect(Collectors.toCollection(HashSet::new));
    }

    private static AssignmentResult result(Map<String, AssignmentResult.Placement> placements, boolean probes) {
        Optional<AssignmentResult.FollowUp> followUp = probes ? Optional.of(new AssignmentResult.FollowUp(600_000, AssignmentResult.Purpose.LEARNING)) : Optional.empty();
        return new AssignmentResult(placements, List.of(), List.of(), followUp, "");
    }

    /** The group in Kafka's types. */
    static final class State implements ApplicationState {

        private final AssignmentConfigs configs;
        private final Map<ProcessId, KafkaStreamsState> members = new HashMap<>();
        private final Map<TaskId, TaskInfo> tasks = new HashMap<>();

        State(Group group) {
            configs = configs(group);
            for (Task task : group.tasks()) {
                TaskId id = TaskId.parse(task.id());
                tasks.put(id, new DefaultTaskInfo(id, true, Set.of("store"), Set.of(
                    new DefaultTaskTopicPartition(new TopicPartition("changelog", id.partition()), false, true, () -> { }))));
            }
            for (Process process : group.processes()) {
                TreeMap<String, Set<TaskId>> consumers = new TreeMap<>(Map.of("consumer-" + process.id(), ids(process.actives())));
                members.put(process(process.id()), new DefaultKafkaStreamsState(process(process.id()), process.threads(), Map.of(),
                    new TreeSet<>(ids(process.actives())), new TreeSet<>(ids(process.standbys())), consumers, Optional.empty(),
                    Optional.of(lags(process)), Optional.empty()));
            }
        }

        @Override
        public Map<ProcessId, KafkaStreamsState> kafkaStreamsStates(boolean computeTaskLags) {
            return members;
        }

        @Override
        public AssignmentConfigs assignmentConfigs() {
            return configs;
        }

        @Override
        public Map<TaskId, TaskInfo> allTasks() {
            return tasks;
        }
    }
}
