package dev.streamapp.assignor;

import dev.streamapp.assignor.core.LearnerAssignment;
import dev.streamapp.assignor.core.model.Announcement;
import dev.streamapp.assignor.core.model.AssignmentResult;
import dev.streamapp.assignor.core.model.Group;
import java.time.Instant;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignmentUtils;
import org.apache.kafka.streams.processor.assignment.TaskAssignor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A task assignor that moves a stateful task only to a process with a ready copy, and empties the processes that leave.
 *
 * <p>To use it without the operator, put the jar beside Kafka Streams and set {@code task.assignor.class} to this class in every instance.
 * It never throws. Kafka creates a new assignor for every rebalance, so it keeps no state but what {@link ProcessAges} and
 * {@link FollowUpInterval} remember.
 */
public final class LearnerTaskAssignor implements TaskAssignor {

    private static final Logger LOG = LoggerFactory.getLogger(LearnerTaskAssignor.class);

    /** A persistent fault must not cause a rebalance at every turn. */
    private static final long PATIENCE_SECONDS = 60;

    private AssignorSettings settings = new AssignorSettings(Map.of());

    /** Makes an assignor with default settings; Kafka calls this, then {@link #configure}. */
    public LearnerTaskAssignor() {}

    /**
     * Lets the application announce the leaving processes if no agent does. Every instance needs it, since each may lead the group.
     *
     * @param source the announcement of {@code agent/protocol/README.md}: {@code state}, {@code processIds} and so on. Every assignment
     *     reads it again. Null removes it
     */
    public static void announceBy(Supplier<Map<String, Object>> source) {
        if (source == null) {
            Bridge.OWN.remove(Bridge.ANNOUNCEMENT);
        } else {
            Bridge.OWN.put(Bridge.ANNOUNCEMENT, source);
        }
    }

    @Override
    public void configure(Map<String, ?> configs) {
        settings = new AssignorSettings(configs);
    }

    @Override
    public TaskAssignment assign(ApplicationState state) {
        try {
            return assignWithLearners(state);
        } catch (Throwable fault) {
            // Linkage errors too: an error that leaves this method stops the thread of one leader after the other.
            warn(fault);
            reportFault(fault);
            return previousOwners(state);
        }
    }

    /** A reader of the last result must not see the result before it. */
    private void reportFault(Throwable fault) {
        try {
            Bridge.reportResult(settings.applicationId(), Bridge.readAnnouncement(settings.isEager()),
                new AssignmentResult(Map.of(), List.of(), List.of(), Optional.empty(), "the assignor failed: " + fault));
        } catch (Throwable agentFault) {
            warn(agentFault);
        }
    }

    private static void warn(Throwable fault) {
        try {
            LOG.error("the assignor failed, previous owners are kept", fault);
        } catch (Throwable logFault) {
            // The log failed too.
        }
    }

    private TaskAssignment assignWithLearners(ApplicationState state) {
        Bridge.ReceivedAnnouncement received = Bridge.readAnnouncement(settings.isEager());
        GroupMapper members = new GroupMapper(state);
        Announcement announcement = members.concerning(received.announcement());
        long now = TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
        Map<String, Long> coldMillis = ProcessAges.coldMillis(settings.applicationId(), members.processIds(), settings.warmMillis(), now);
        Group group = members.group(announcement, settings.with(state.assignmentConfigs()), settings.weights(), coldMillis);
        AssignmentResult result = FollowUpInterval.applied(settings.applicationId(), announcement, LearnerAssignment.assign(group), now);
        TaskAssignment plain = finished(members, members.assignments(result), announcement, result);
        AssignmentResult reported = result;
        TaskAssignment chosen = plain;
        if (TaskAssignmentUtils.validateTaskAssignment(state, plain) != AssignmentError.NONE) {
            chosen = previousOwners(state);
            reported = fellBack(result, "Kafka found the assignment wrong");
        } else {
            chosen = withRacks(state, members, announcement, result, plain);
        }
        LOG.info("{} moved, {} learn, {} ready, follow-up {}{}", reported.moved(), reported.learning(false), reported.learning(true),
            reported.followUp(), reported.fellBack().isEmpty() ? "" : ", fell back: " + reported.fellBack());
        reported.moves().forEach(move -> LOG.debug("task {} from {} to {}: {}", move.task(), move.from(), move.to(), move.why()));
        Bridge.reportResult(settings.applicationId(), received, reported);
        return chosen;
    }

    private static AssignmentResult fellBack(AssignmentResult result, String why) {
        return new AssignmentResult(result.placements(), List.of(), List.of(), Optional.empty(), why);
    }

    /** Racks are a preference. If Kafka's utilities fail or make the assignment invalid, it stays as it was. */
    private TaskAssignment withRacks(
        ApplicationState state, GroupMapper members, Announcement announcement, AssignmentResult result, TaskAssignment plain) {
        try {
            Map<ProcessId, KafkaStreamsAssignment> assignments = members.assignments(result);
            new RackAwareness(state, members, staying(members, announcement)).apply(assignments, result);
            TaskAssignment placed = finished(members, assignments, announcement, result);
            return TaskAssignmentUtils.validateTaskAssignment(state, placed) == AssignmentError.NONE ? placed : plain;
        } catch (RuntimeException | LinkageError fault) {
            LOG.warn("racks are not looked at in this round: {}", fault.toString());
            return plain;
        }
    }

    private static Set<ProcessId> staying(GroupMapper members, Announcement announcement) {
        Set<ProcessId> all = members.byProcess().keySet();
        Set<ProcessId> staying = all.stream()
            .filter(process -> announcement.state() != Announcement.State.SET || !announcement.leaving().contains(process.id().toString()))
            .collect(Collectors.toSet());
        return staying.isEmpty() ? all : staying;
    }

    /** The first staying process by name requests the follow-up. */
    private static TaskAssignment finished(
        GroupMapper members, Map<ProcessId, KafkaStreamsAssignment> assignments, Announcement announcement, AssignmentResult result) {
        Map<ProcessId, KafkaStreamsAssignment> finished = new HashMap<>(assignments);
        Optional<ProcessId> asks = staying(members, announcement).stream().min(ProcessId::compareTo);
        result.followUp().ifPresent(wish -> asks.ifPresent(process -> finished.computeIfPresent(
            process, (id, part) -> part.withFollowupRebalance(Instant.now().plusMillis(wish.millis())))));
        return new TaskAssignment(finished.values());
    }

    /** The last resort. It uses as little of Kafka's interface as possible. */
    private static TaskAssignment previousOwners(ApplicationState state) {
        Map<ProcessId, Set<AssignedTask>> kept = new HashMap<>();
        try {
            Set<TaskId> placed = new HashSet<>();
            Map<ProcessId, KafkaStreamsState> members = state.kafkaStreamsStates(false);
            List<ProcessId> order = members.keySet().stream().sorted().toList();
            for (ProcessId process : order) {
                Set<AssignedTask> tasks = new HashSet<>();
                for (TaskId task : members.get(process).previousActiveTasks()) {
                    if (state.allTasks().containsKey(task) && placed.add(task)) {
                        tasks.add(new AssignedTask(task, AssignedTask.Type.ACTIVE));
                    }
                }
                kept.put(process, tasks);
            }
            for (TaskId task : state.allTasks().keySet().stream().filter(task -> !placed.contains(task)).sorted().toList()) {
                ProcessId least = order.stream().min((one, other) -> kept.get(one).size() - kept.get(other).size()).orElseThrow();
                kept.get(least).add(new AssignedTask(task, AssignedTask.Type.ACTIVE));
            }
        } catch (Throwable fault) {
            warn(fault);
        }
        Instant again = Instant.now().plusSeconds(PATIENCE_SECONDS);
        Optional<ProcessId> asks = kept.keySet().stream().min(ProcessId::compareTo);
        return new TaskAssignment(kept.entrySet().stream().map(part -> {
            KafkaStreamsAssignment assignment = KafkaStreamsAssignment.of(part.getKey(), part.getValue());
            return asks.filter(part.getKey()::equals).isPresent() ? assignment.withFollowupRebalance(again) : assignment;
        }).toList());
    }
}
