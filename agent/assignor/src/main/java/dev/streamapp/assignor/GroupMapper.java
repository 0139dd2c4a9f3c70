package dev.streamapp.assignor;

import dev.streamapp.assignor.core.model.Announcement;
import dev.streamapp.assignor.core.model.AssignmentResult;
import dev.streamapp.assignor.core.model.Group;
import dev.streamapp.assignor.core.model.Process;
import dev.streamapp.assignor.core.model.Settings;
import dev.streamapp.assignor.core.model.Task;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.streams.errors.TaskAssignmentException;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.apache.kafka.streams.processor.assignment.TaskTopicPartition;

/** Maps Kafka's view of the group to values, and the result back to Kafka's types. */
final class GroupMapper {

    private final ApplicationState state;
    private final Map<ProcessId, KafkaStreamsState> members;
    private final Map<String, TaskId> tasks = new HashMap<>();
    private final Map<TaskId, String> names = new HashMap<>();
    private final Map<String, ProcessId> processes = new TreeMap<>();
    private final boolean lagsRead;

    GroupMapper(ApplicationState state) {
        this.state = state;
        Map<ProcessId, KafkaStreamsState> read = null;
        try {
            read = state.kafkaStreamsStates(true);
        } catch (TaskAssignmentException unread) {
            // A later round can read the lags. Until then nothing moves.
        }
        lagsRead = read != null;
        members = lagsRead ? read : state.kafkaStreamsStates(false);
        members.keySet().forEach(process -> processes.put(process.id().toString(), process));
        state.allTasks().keySet().forEach(task -> {
            tasks.put(task.toString(), task);
            names.put(task, task.toString());
        });
    }

    /**
     * Return what of the announcement concerns this group: an announcement that names none of its processes is empty. An agent serves all
     * applications of its JVM, so the others hear of one that leaves, too.
     */
    Announcement concerning(Announcement announcement) {
        boolean names = announcement.state() != Announcement.State.SET || announcement.leaving().stream().anyMatch(processes::containsKey);
        return names ? announcement : Announcement.empty();
    }

    /** Return the IDs of all processes. */
    Set<String> processIds() {
        return processes.keySet();
    }

    /**
     * Return the group as values, with the weights that the user wants.
     *
     * @param coldMillis by process ID, in how many milliseconds it counts as warm; processes that are warm can be missing
     */
    Group group(Announcement announcement, Settings settings, TaskWeights weights, Map<String, Long> coldMillis) {
        List<Task> listed = new ArrayList<>();
        state.allTasks().keySet().stream().sorted().forEach(id -> listed.add(task(state.allTasks().get(id), weights)));
        List<Process> read = new ArrayList<>();
        members.values().forEach(member -> read.add(process(member, coldMillis)));
        return new Group(read, listed, lagsAreKnown(read), announcement, settings);
    }

    private Task task(TaskInfo task, TaskWeights weights) {
        // A store without a changelog has no copies, so a move need not wait.
        boolean stateful = task.isStateful() && task.topicPartitions().stream().anyMatch(TaskTopicPartition::isChangelog);
        String topology = task.id().topologyName();
        String group = (topology == null ? "" : topology + "__") + task.id().subtopology();
        return new Task(names.get(task.id()), group, stateful, weights.weightOf(task));
    }

    private Process process(KafkaStreamsState member, Map<String, Long> coldMillis) {
        Map<String, Long> lags = new HashMap<>();
        if (lagsRead) {
            member.statefulTasksToLagSums().forEach((task, lag) -> lags.put(names.getOrDefault(task, task.toString()), lag));
        }
        String id = member.processId().id().toString();
        return new Process(id, member.numProcessingThreads(),
            named(member.previousActiveTasks()), named(member.previousStandbyTasks()), lags, coldMillis.getOrDefault(id, 0L));
    }

    private Set<String> named(Collection<TaskId> ids) {
        Set<String> named = new HashSet<>();
        ids.forEach(id -> named.add(names.getOrDefault(id, id.toString())));
        return named;
    }

    /** If the end offsets are unreadable, Kafka does not throw. It marks the lag of every copy that does not process as unknown. */
    private boolean lagsAreKnown(List<Process> read) {
        if (!lagsRead) {
            return false;
        }
        boolean some = false;
        boolean unknown = false;
        for (Process process : read) {
            for (long lag : process.lags().values()) {
                some |= lag >= 0;
                unknown |= lag < 0 && lag != Process.RUNNING;
            }
        }
        return some || !unknown;
    }

    /** Return tasks that no member had before. They start without state on any process. */
    Set<TaskId> fresh() {
        Set<TaskId> fresh = new HashSet<>(names.keySet());
        members.values().forEach(member -> {
            fresh.removeAll(member.previousActiveTasks());
            fresh.removeAll(member.previousStandbyTasks());
        });
        return fresh;
    }

    ProcessId process(String id) {
        return processes.get(id);
    }

    TaskId task(String id) {
        return tasks.get(id);
    }

    Map<ProcessId, KafkaStreamsState> byProcess() {
        return members;
    }

    /** Return the outcome in Kafka's types. */
    Map<ProcessId, KafkaStreamsAssignment> assignments(AssignmentResult result) {
        Map<ProcessId, KafkaStreamsAssignment> assignments = new HashMap<>();
        result.placements().forEach((id, placement) -> {
            Set<AssignedTask> assigned = new HashSet<>();
            placement.actives().forEach(task -> assigned.add(new AssignedTask(tasks.get(task), AssignedTask.Type.ACTIVE)));
            placement.standbys().forEach(task -> assigned.add(new AssignedTask(tasks.get(task), AssignedTask.Type.STANDBY)));
            assignments.put(processes.get(id), KafkaStreamsAssignment.of(processes.get(id), assigned));
        });
        return assignments;
    }
}
