package dev.streamapp.assignor.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.streamapp.assignor.core.model.Announcement;
import dev.streamapp.assignor.core.model.AssignmentResult;
import dev.streamapp.assignor.core.model.Group;
import dev.streamapp.assignor.core.model.Process;
import dev.streamapp.assignor.core.model.Settings;
import dev.streamapp.assignor.core.model.Task;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Whatever comes in, a valid assignment goes out. */
class TotalityTest {

    private static final long[] ODD = {0, 1, -1, -2, -3, 10_000, 10_001, Long.MAX_VALUE, Long.MIN_VALUE, Long.MAX_VALUE - 1};

    @Test
    void nothingInNothingOut() {
        assertEquals(Map.of(), LearnerAssignment.assign(null).placements());
        AssignmentResult nobody = LearnerAssignment.assign(new Group(null, List.of(new Task("0_0", "0", true, 1)), true, null, null));
        assertEquals(Map.of(), nobody.placements());
    }

    @Test
    void garbageGivesAValidAssignmentOfTheAssignorsOwn() {
        for (int seed = 0; seed < 5_000; seed++) {
            Group group = garbage(new Random(seed));
            AssignmentResult result = LearnerAssignment.assign(group);
            assertEquals("", result.fellBack(), "seed " + seed);
            checkValid(group, result, "seed " + seed);
            assertEquals(Scenario.told(result), Scenario.told(LearnerAssignment.assign(group)), "seed " + seed);
        }
    }

    @Test
    void thePlanThatCannotGoWrongIsValidForGarbageToo() {
        for (int seed = 0; seed < 2_000; seed++) {
            Group group = garbage(new Random(seed));
            AssignmentResult result = FallbackAssignment.of(group, "tried");
            assertEquals("tried", result.fellBack());
            checkValid(group, result, "seed " + seed);
        }
    }

    @Test
    void faultsAreFound() {
        Task task = new Task("0_0", "0", true, 1);
        Group group = new Group(List.of(process("a"), process("b")), List.of(task), true, Announcement.empty(), null);
        AssignmentResult.Placement both = new AssignmentResult.Placement(Set.of("0_0"), Set.of("0_0"));
        AssignmentResult.Placement active = new AssignmentResult.Placement(Set.of("0_0"), Set.of());
        AssignmentResult.Placement standby = new AssignmentResult.Placement(Set.of(), Set.of("0_0"));
        AssignmentResult.Placement foreign = new AssignmentResult.Placement(Set.of("9_9"), Set.of());
        AssignmentResult.Placement none = new AssignmentResult.Placement(Set.of(), Set.of());
        assertEquals("", AssignmentValidator.firstFault(group, Map.of("a", active, "b", standby)));
        for (Map<String, AssignmentResult.Placement> wrong : List.of(Map.of("a", active), Map.of("a", both, "b", none), Map.of("a", active, "b", active),
            Map.of("a", standby, "b", none), Map.of("a", active, "b", foreign), Map.of("a", active, "b", none, "c", none))) {
            assertTrue(!AssignmentValidator.firstFault(group, wrong).isEmpty(), wrong.toString());
        }
    }

    private static Process process(String id) {
        return new Process(id, 1, Set.of(), Set.of(), Map.of());
    }

    private static void checkValid(Group group, AssignmentResult result, String seed) {
        Set<String> processes = new HashSet<>();
        group.processes().forEach(process -> processes.add(process.id()));
        assertEquals(processes, result.placements().keySet(), seed);
        List<String> actives = new ArrayList<>();
        result.placements().values().forEach(placement -> {
            actives.addAll(placement.actives());
            placement.standbys().forEach(task -> assertTrue(!placement.actives().contains(task), seed));
        });
        List<String> tasks = new ArrayList<>();
        group.tasks().forEach(task -> tasks.add(task.id()));
        actives.sort(null);
        tasks.sort(null);
        assertEquals(processes.isEmpty() ? List.of() : tasks, actives, seed);
    }

    private static Group garbage(Random random) {
        List<Task> tasks = new ArrayList<>();
        for (int n = random.nextInt(12); n > 0; n--) {
            tasks.add(random.nextInt(9) == 0 ? null : new Task(name(random), random.nextBoolean() ? null : name(random), random.nextBoolean(), random.nextInt()));
        }
        List<Process> processes = new ArrayList<>();
        for (int n = random.nextInt(7); n > 0; n--) {
            processes.add(random.nextInt(9) == 0 ? null : new Process(name(random), random.nextInt(), names(random), names(random), lags(random)));
        }
        Announcement.State[] states = {null, Announcement.State.UNKNOWN, Announcement.State.EMPTY, Announcement.State.SET, Announcement.State.EMPTY};
        Announcement announcement = new Announcement(states[random.nextInt(5)], names(random), random.nextBoolean(), odd(random));
        Settings settings = new Settings(odd(random), (int) odd(random), (int) odd(random), (int) odd(random), (int) odd(random),
            random.nextBoolean(), odd(random));
        return new Group(processes, tasks, random.nextInt(5) > 0, announcement, random.nextBoolean() ? settings : null);
    }

    private static String name(Random random) {
        return random.nextInt(20) == 0 ? null : "0_" + random.nextInt(10);
    }

    private static long odd(Random random) {
        return ODD[random.nextInt(ODD.length)];
    }

    private static Set<String> names(Random random) {
        String[] names = new String[random.nextInt(8)];
        Arrays.setAll(names, n -> name(random));
        return random.nextInt(9) == 0 ? null : new HashSet<>(Arrays.asList(names));
    }

    private static Map<String, Long> lags(Random random) {
        Map<String, Long> lags = new HashMap<>();
        for (int n = random.nextInt(9); n > 0; n--) {
            lags.put(name(random), random.nextInt(9) == 0 ? null : Long.valueOf(odd(random)));
        }
        return lags;
    }
}
