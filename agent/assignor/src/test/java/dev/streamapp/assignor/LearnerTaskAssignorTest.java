package dev.streamapp.assignor;

import static dev.streamapp.assignor.KafkaGroup.process;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.kafka.streams.errors.TaskAssignmentException;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignmentUtils;
import org.apache.kafka.streams.processor.assignment.TaskAssignor.AssignmentError;
import org.apache.kafka.streams.processor.assignment.TaskAssignor.TaskAssignment;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class LearnerTaskAssignorTest {


    @AfterEach
    void leaveNothingBehind() {
        Bridge.OWN.clear();
        ProcessAges.SEEN.clear();
    }

    private static TaskAssignment assign(KafkaGroup group, Map<String, ?> settings) {
        LearnerTaskAssignor assignor = new LearnerTaskAssignor();
        assignor.configure(settings);
        TaskAssignment made = assignor.assign(group);
        assertEquals(AssignmentError.NONE, TaskAssignmentUtils.validateTaskAssignment(group, made));
        return made;
    }

    /** Write an assignment as {@code 1: 0_0 0_1 (0_2)}, standbys in brackets. */
    private static String told(TaskAssignment made) {
        Map<ProcessId, String> parts = new TreeMap<>();
        for (KafkaStreamsAssignment part : made.assignment()) {
            List<String> tasks = new ArrayList<>();
            new TreeMap<>(part.tasks()).forEach((id, task) ->
                tasks.add(task.type() == KafkaStreamsAssignment.AssignedTask.Type.ACTIVE ? id.toString() : "(" + id + ")"));
            parts.put(part.processId(), part.processId().id().getMostSignificantBits() + ": " + String.join(" ", tasks));
        }
        return String.join(", ", parts.values());
    }

    private static Map<Long, Duration> followUps(TaskAssignment made) {
        Map<Long, Duration> asked = new HashMap<>();
        made.assignment().forEach(part -> part.followupRebalanceDeadline().ifPresent(
            at -> asked.put(part.processId().id().getMostSignificantBits(), Duration.between(Instant.now(), at))));
        return asked;
    }

    private static void assertFollowUp(TaskAssignment made, long process, long millis) {
        Map<Long, Duration> asked = followUps(made);
        assertEquals(Set.of(process), asked.keySet());
        assertTrue(Math.abs(asked.get(process).toMillis() - millis) < 2_000, asked.toString());
    }

    private static void announce(Map<String, Object> words) {
        Supplier<Map<String, Object>> agent = () -> words;
        LearnerTaskAssignor.announceBy(agent);
    }

    private static Map<String, Object> leaving(int... processes) {
        List<String> ids = new ArrayList<>();
        for (int number : processes) {
            ids.add(process(number).id().toString());
        }
        return Map.of("state", "set", "processIds", ids, "rebalance", "Conservative", "lease", 3L, "counter", 8L, "expiresInMillis", 20_000L);
    }

    private static KafkaGroup two() {
        return new KafkaGroup().stateful("0_0", "0_1", "0_2").member(1, Set.of("0_0", "0_1"), Map.of()).member(2, Set.of("0_2"), Map.of());
    }

    @Test
    void withoutAnAgentABalancedGroupStaysAsItIs() {
        TaskAssignment made = assign(two(), Map.of());
        assertEquals("1: 0_0 0_1, 2: 0_2", told(made));
        assertEquals(Map.of(), followUps(made));
    }

    private static KafkaGroup joined() {
        return new KafkaGroup().stateful("0_0", "0_1").member(1, Set.of("0_0", "0_1"), Map.of()).member(2, Set.of(), Map.of("0_0", 5L));
    }

    @Test
    void aProcessThatHasJustJoinedGetsItsTaskWhenItIsWarm() {
        Map<String, ?> settings = Map.of("application.id", "warms-up", "streamapp.assignor.warm.ms", "4000");
        assign(new KafkaGroup().stateful("0_0", "0_1").member(1, Set.of("0_0", "0_1"), Map.of()), settings);
        TaskAssignment made = assign(joined(), settings);
        assertEquals("1: 0_0 0_1, 2: (0_0)", told(made));
        assertFollowUp(made, 1, 4_000);
        assertEquals("1: 0_1, 2: 0_0", told(assign(joined(), Map.of("application.id", "warms-up", "streamapp.assignor.warm.ms", "0"))));
    }

    @Test
    void aNewLeaderDoesNotWaitForProcessesThatItFinds() {
        assertEquals("1: 0_1, 2: 0_0", told(assign(joined(), Map.of("application.id", "new-leader"))));
    }

    @Test
    void theWaitForAWarmProcessIsBounded() {
        assertEquals(10_000, new AssignorSettings(Map.of()).warmMillis());
        assertEquals(0, new AssignorSettings(Map.of("streamapp.assignor.warm.ms", 0)).warmMillis());
        assertEquals(60_000, new AssignorSettings(Map.of("streamapp.assignor.warm.ms", "3600000")).warmMillis());
        assertEquals(10_000, new AssignorSettings(Map.of("streamapp.assignor.warm.ms", "soon")).warmMillis());
    }

    @Test
    void aLeavingProcessIsLearnedFromAndTheFollowUpIsAskedByOneThatStays() {
        announce(leaving(1));
        TaskAssignment made = assign(two(), Map.of("streamapp.assignor.followup.ms", "4000"));
        assertEquals("1: 0_0 0_1, 2: (0_0) (0_1) 0_2", told(made));
        assertFollowUp(made, 2, 4_000);
    }

    @Test
    void theAgentIsToldTheRound() {
        List<Map<String, Object>> received = new ArrayList<>();
        Consumer<Map<String, Object>> agent = received::add;
        Bridge.OWN.put(Bridge.ROUND, agent);
        announce(leaving(1));
        KafkaGroup group = new KafkaGroup().stateful("0_0", "0_1", "0_2")
            .member(1, Set.of("0_0", "0_1"), Map.of()).member(2, Set.of("0_2"), Map.of("0_0", 5L, "0_1", 50_000L));
        assign(group, Map.of("application.id", "shop"));
        assertEquals(List.of(Map.of(
            "applicationId", "shop", "announcement", "set", "epoch", Map.of("lease", 3L, "counter", 8L), "moved", 0L, "learning", 1L, "ready", 1L,
            "followUpMillis", 10_000L, "followUpFor", "learning", "fellBack", "")), received);
    }

    @Test
    void nothingIsLeftToDoUntilTheAnnouncementExpires() {
        announce(leaving(1));
        KafkaGroup group = new KafkaGroup().stateful("0_0", "0_1").member(1, Set.of(), Map.of("0_0", 0L)).member(2, Set.of("0_0", "0_1"), Map.of());
        TaskAssignment made = assign(group, Map.of());
        assertEquals("1: , 2: 0_0 0_1", told(made));
        assertFollowUp(made, 2, 21_000);
    }

    @Test
    void whoLeavesAnotherApplicationOfTheJvmLeavesThisOneInBalance() {
        announce(leaving(7));
        KafkaGroup group = new KafkaGroup().stateful("0_0", "0_1", "0_2", "0_3").member(1, Set.of("0_0", "0_1", "0_2", "0_3"), Map.of())
            .member(2, Set.of(), Map.of("0_0", 0L, "0_1", 0L));
        TaskAssignment made = assign(group, Map.of());
        assertEquals("1: 0_2 0_3, 2: 0_0 0_1", told(made));
        assertEquals(Map.of(), followUps(made));
    }

    @Test
    void anApplicationThatTakesItsWordBackIsAnnouncedNoMore() {
        announce(leaving(1));
        assertEquals("1: 0_0 0_1, 2: (0_0) (0_1) 0_2", told(assign(two(), Map.of())));
        LearnerTaskAssignor.announceBy(null);
        assertEquals("1: 0_0 0_1, 2: 0_2", told(assign(two(), Map.of())));
    }

    static List<Object> oddAgents() {
        Supplier<Object> broken = () -> {
            throw new IllegalStateException("broken");
        };
        Supplier<Object> unlinked = () -> {
            throw new NoClassDefFoundError("gone");
        };
        Supplier<Object> noMap = () -> "leaving";
        Supplier<Object> odd = () -> Map.of("state", 7);
        Supplier<Object> noList = () -> Map.of("state", "set", "processIds", "all");
        Supplier<Object> nothing = () -> null;
        Supplier<Object> unknown = () -> Map.of("state", "unknown");
        return List.of(broken, unlinked, noMap, odd, noList, nothing, unknown, "no supplier");
    }

    @ParameterizedTest
    @MethodSource("oddAgents")
    void whatIsNotUnderstoodMovesNothing(Object agent) {
        Bridge.OWN.put(Bridge.ANNOUNCEMENT, agent);
        Bridge.OWN.put(Bridge.ROUND, (Consumer<String>) word -> word.length());
        KafkaGroup group = new KafkaGroup().stateful("0_0", "0_1", "0_2", "0_3")
            .member(1, Set.of("0_0", "0_1", "0_2"), Map.of()).member(2, Set.of(), Map.of("0_0", 0L));
        TaskAssignment made = assign(group, Map.of());
        assertEquals("1: 0_0 0_1 0_2, 2: (0_0) 0_3", told(made));
        assertFollowUp(made, 1, 10_000);
    }

    @Test
    void lagsThatCannotBeReadKeepTheOwners() {
        KafkaGroup marked = new KafkaGroup().stateful("0_0", "0_1", "0_2", "0_3").member(1, Set.of("0_0", "0_1", "0_2"), Map.of())
            .member(2, Set.of(), Map.of("0_0", KafkaGroup.UNKNOWN, "0_1", KafkaGroup.UNKNOWN, "0_2", KafkaGroup.UNKNOWN, "0_3", KafkaGroup.UNKNOWN));
        marked.member(1, Set.of("0_0", "0_1", "0_2"), Map.of("0_3", KafkaGroup.UNKNOWN));
        TaskAssignment made = assign(marked, Map.of());
        assertEquals("1: 0_0 0_1 0_2 (0_3), 2: (0_0) (0_1) (0_2) 0_3", told(made));
        assertFollowUp(made, 1, 10_000);
    }

    @Test
    void lagsThatThrowKeepTheOwners() {
        KafkaGroup group = new KafkaGroup() {
            @Override
            public Map<ProcessId, KafkaStreamsState> kafkaStreamsStates(boolean computeTaskLags) {
                if (computeTaskLags) {
                    throw new TaskAssignmentException("no end offsets");
                }
                return super.kafkaStreamsStates(false);
            }
        };
        group.stateful("0_0", "0_1", "0_2", "0_3").member(1, Set.of("0_0", "0_1", "0_2"), Map.of()).member(2, Set.of(), Map.of("0_0", 0L));
        TaskAssignment made = assign(group, Map.of());
        assertEquals("1: 0_0 0_1 0_2, 2: (0_0) 0_3", told(made));
        assertFollowUp(made, 1, 10_000);
    }

    @Test
    void evenAnErrorOfLinkingLeavesAValidAssignmentAndIsTold() {
        List<Object> received = new ArrayList<>();
        Consumer<Map<String, Object>> agent = round -> received.add(round.get("fellBack"));
        Bridge.OWN.put(Bridge.ROUND, agent);
        KafkaGroup group = new KafkaGroup() {
            @Override
            public Map<ProcessId, KafkaStreamsState> kafkaStreamsStates(boolean computeTaskLags) {
                if (computeTaskLags) {
                    throw new NoSuchMethodError("another release of Kafka");
                }
                return super.kafkaStreamsStates(false);
            }
        };
        group.stateful("0_0", "0_1", "0_2").member(1, Set.of("0_0", "0_1"), Map.of()).member(2, Set.of(), Map.of("0_1", 0L));
        TaskAssignment made = assign(group, Map.of());
        assertEquals("1: 0_0 0_1, 2: 0_2", told(made));
        assertFollowUp(made, 1, 60_000);
        assertEquals(List.of("the assignor failed: java.lang.NoSuchMethodError: another release of Kafka"), received);
    }

    @Test
    void aStoreWithoutAChangelogHasNothingToLearn() {
        announce(leaving(1));
        KafkaGroup group = new KafkaGroup().with("0_0", true, false).with("1_0", false, false).stateful("2_0")
            .member(1, Set.of("0_0", "1_0"), Map.of()).member(2, Set.of("2_0"), Map.of());
        assertEquals("1: , 2: 0_0 1_0 2_0", told(assign(group, Map.of())));
    }

    /** Twice as heavy as the others: the first two tasks. */
    public static final class FirstTwoAreHeavy implements TaskWeights {
        @Override
        public int weightOf(TaskInfo task) {
            return task.id().partition() < 2 ? 2 : 1;
        }
    }

    @Test
    void weightsOfTheUsersOwnDecideWhatBalanceIs() {
        KafkaGroup group = new KafkaGroup().stateful("0_0", "0_1", "0_2", "0_3", "0_4", "0_5")
            .member(1, Set.of(), Map.of()).member(2, Set.of(), Map.of());
        Map<String, ?> settings = Map.of("streamapp.assignor.weights.class", FirstTwoAreHeavy.class.getName());
        KafkaGroup lopsided = new KafkaGroup().stateful("0_0", "0_1", "0_2", "0_3")
            .member(1, Set.of("0_0", "0_1"), Map.of()).member(2, Set.of("0_2", "0_3"), Map.of("0_0", 0L));
        assertEquals("1: 0_0 0_2 0_4, 2: 0_1 0_3 0_5", told(assign(group, settings)));
        assertEquals("1: 0_1, 2: 0_0 0_2 0_3", told(assign(lopsided, Map.of("streamapp.assignor.weights.class", OnlyTheFirst.class))));
    }

    /** The first task weighs nothing to speak of. */
    public static final class OnlyTheFirst implements TaskWeights {
        @Override
        public int weightOf(TaskInfo task) {
            return task.id().partition() == 1 ? 100 : -5;
        }
    }

    @Test
    void settingsThatMakeNoSenseTakeTheirDefaults() {
        Map<String, Object> odd = new HashMap<>();
        odd.put("streamapp.assignor.followup.ms", "soon");
        odd.put("streamapp.assignor.tolerance", new Object());
        odd.put("streamapp.assignor.weights.class", "no.such.Type");
        odd.put("streamapp.assignor.rebalance", 12);
        odd.put("application.id", null);
        announce(leaving(1));
        assertFollowUp(assign(two(), odd), 2, 10_000);
        assertEquals("1: 0_0 0_1, 2: (0_0) (0_1) 0_2", told(assign(two(), null)));
    }

    @Test
    void tasksWithoutStateStartInTheRackOfTheirPartitionsAndOthersStay() {
        KafkaGroup group = new KafkaGroup().with("0_0", true, true, "b").with("0_1", true, true, "a").with("0_2", true, true, "a");
        group.member(1, Set.of("0_2"), Map.of(), Map.of(), Optional.of("b")).member(2, Set.of(), Map.of(), Map.of(), Optional.of("a"));
        group.configs = KafkaGroup.configs(0, List.of(), "min_traffic");
        assertEquals("1: 0_0 0_2, 2: 0_1", told(assign(group, Map.of())));
    }

    @Test
    void standbysOfTheSameRackAreSwappedAndLearnersAreNot() {
        KafkaGroup group = new KafkaGroup();
        for (String id : List.of("0_0", "0_1", "0_2", "0_3")) {
            group.with(id, true, true, id.compareTo("0_2") < 0 ? "a" : "b");
        }
        group.member(1, Set.of("0_0"), Map.of("0_2", 0L), Map.of(), Optional.of("a")).member(2, Set.of("0_2"), Map.of("0_0", 0L), Map.of(), Optional.of("b"))
            .member(3, Set.of("0_1"), Map.of("0_3", 60_000L), Map.of(), Optional.of("a")).member(4, Set.of("0_3"), Map.of("0_1", 0L), Map.of(), Optional.of("b"));
        group.configs = KafkaGroup.configs(1, List.of(), "min_traffic");
        announce(leaving(4));
        TaskAssignment made = assign(group, Map.of());
        String third = told(made).split(", ")[2];
        assertTrue(third.startsWith("3: ") && third.contains("0_1") && third.contains("(0_3)"), told(made));
        assertEquals("4: 0_3", told(made).split(", ")[3]);
    }

    @Test
    void standbysGoToOtherZonesAndNotToProcessesThatLeave() {
        KafkaGroup group = new KafkaGroup().stateful("0_0", "0_1")
            .member(1, Set.of("0_0"), Map.of(), Map.of("zone", "a"), Optional.empty()).member(2, Set.of("0_1"), Map.of(), Map.of("zone", "a"), Optional.empty())
            .member(3, Set.of(), Map.of(), Map.of("zone", "b"), Optional.empty()).member(4, Set.of(), Map.of(), Map.of("zone", "b"), Optional.empty());
        group.configs = KafkaGroup.configs(1, List.of("zone"), "none");
        announce(leaving(4));
        assertEquals("1: 0_0, 2: 0_1, 3: (0_0) (0_1), 4: ", told(assign(group, Map.of())));
    }

    @Test
    void learnersStayWhereTheyLearnWhateverTheZones() {
        KafkaGroup group = new KafkaGroup().stateful("0_0", "0_1", "0_2")
            .member(1, Set.of("0_0"), Map.of("0_2", 70_000L), Map.of("zone", "a"), Optional.empty())
            .member(2, Set.of("0_1"), Map.of(), Map.of("zone", "b"), Optional.empty())
            .member(3, Set.of("0_2"), Map.of(), Map.of("zone", "a"), Optional.empty());
        group.configs = KafkaGroup.configs(1, List.of("zone"), "none");
        announce(leaving(3));
        TreeSet<TaskId> first = new TreeSet<>();
        assign(group, Map.of()).assignment().stream().filter(part -> part.processId().equals(process(1))).forEach(part -> first.addAll(part.tasks().keySet()));
        assertTrue(first.contains(KafkaGroup.task("0_2")), first.toString());
    }
}
