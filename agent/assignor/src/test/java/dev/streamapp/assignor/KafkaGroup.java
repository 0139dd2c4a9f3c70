package dev.streamapp.assignor;

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
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.apache.kafka.streams.processor.assignment.TaskTopicPartition;
import org.apache.kafka.streams.processor.internals.assignment.DefaultKafkaStreamsState;
import org.apache.kafka.streams.processor.internals.assignment.DefaultTaskInfo;
import org.apache.kafka.streams.processor.internals.assignment.DefaultTaskTopicPartition;

/** A group made of Kafka's own classes; only the outermost one, whose constructor is not open, is the interface implemented here. */
class KafkaGroup implements ApplicationState {

    static final long RUNNING = -2;
    static final long UNKNOWN = -3;

    final Map<ProcessId, KafkaStreamsState> members = new HashMap<>();
    final Map<TaskId, TaskInfo> tasks = new TreeMap<>();
    AssignmentConfigs configs = configs(0, List.of(), "none");

    static AssignmentConfigs configs(int standbys, List<String> tags, String rackStrategy) {
        return new AssignmentConfigs(10_000L, 2, standbys, 600_000L, tags, OptionalInt.empty(), OptionalInt.empty(), rackStrategy);
    }

    static ProcessId process(int number) {
        return new ProcessId(new UUID(number, number));
    }

    static TaskId task(String id) {
        return TaskId.parse(id);
    }

    /** Add a task with one source partition and, if asked, a store with or without a changelog. */
    KafkaGroup with(String id, boolean store, boolean changelog, String... racks) {
        Set<TaskTopicPartition> partitions = new HashSet<>();
        partitions.add(partition("input", task(id).partition(), true, racks));
        if (changelog) {
            partitions.add(partition("changelog", task(id).partition(), false, racks));
        }
        tasks.put(task(id), new DefaultTaskInfo(task(id), store, store ? Set.of("counts") : Set.of(), partitions));
        return this;
    }

    private static TaskTopicPartition partition(String topic, int number, boolean source, String... racks) {
        DefaultTaskTopicPartition made = new DefaultTaskTopicPartition(new TopicPartition(topic, number), source, !source, () -> { });
        made.annotateWithRackIds(Set.of(racks));
        return made;
    }

    KafkaGroup stateful(String... ids) {
        for (String id : ids) {
            with(id, true, true);
        }
        return this;
    }

    KafkaGroup member(int number, Set<String> actives, Map<String, Long> copies) {
        return member(number, actives, copies, Map.of(), Optional.empty());
    }

    /** Add a process of one thread; what it has no copy of lags by 100,000. */
    KafkaGroup member(int number, Set<String> actives, Map<String, Long> copies, Map<String, String> tags, Optional<String> rack) {
        Map<TaskId, Long> lags = new HashMap<>();
        tasks.values().stream().filter(task -> task.topicPartitions().stream().anyMatch(TaskTopicPartition::isChangelog))
            .forEach(task -> lags.put(task.id(), actives.contains(task.id().toString()) ? RUNNING : 100_000L));
        copies.forEach((id, lag) -> lags.put(task(id), lag));
        TreeSet<TaskId> previous = new TreeSet<>(actives.stream().map(KafkaGroup::task).toList());
        TreeSet<TaskId> standbys = new TreeSet<>(copies.keySet().stream().map(KafkaGroup::task).toList());
        Set<TaskId> all = new HashSet<>(previous);
        all.addAll(standbys);
        members.put(process(number), new DefaultKafkaStreamsState(process(number), 1, tags, previous, standbys,
            new TreeMap<>(Map.of("consumer-" + number, all)), Optional.empty(), Optional.of(lags), rack));
        return this;
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
