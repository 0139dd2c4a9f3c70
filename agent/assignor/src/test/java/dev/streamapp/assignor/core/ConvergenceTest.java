package dev.streamapp.assignor.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.streamapp.assignor.core.model.Announcement;
import dev.streamapp.assignor.core.model.Group;
import dev.streamapp.assignor.core.model.Settings;
import dev.streamapp.assignor.core.model.Task;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Groups that are disturbed at random and then left alone end balanced, within the bound that the README derives.
 *
 * <p>A turn is a rebalance with the hand-overs that follow from it. A learner is ready after at most R turns. While there are learners, one
 * moves at least every R + 1 turns, since none begins as long as none moves; so M moves take at most M (R + 1) turns, and one more to see it.
 */
class ConvergenceTest {

    private static final int RUNS = Integer.getInteger("runs", 1000);

    /** Enough for a copy of the largest state, at the speed of the model. */
    private static final int R = 6;

    /** After so many turns a copy that nothing feeds is ready no more. */
    private static final int FORGOTTEN = 22;

    static IntStream seeds() {
        return IntStream.range(0, 20);
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void disturbedGroupsConvergeWithinTheBound(int part) {
        for (int run = part; run < RUNS; run += 20) {
            long seed = run;
            Random random = new Random(seed);
            Cluster cluster = cluster(random);
            try {
                disturb(cluster, random);
                settle(cluster);
            } catch (AssertionError failure) {
                throw new AssertionError("seed " + seed + ": " + failure.getMessage(), failure);
            }
        }
    }

    private static Cluster cluster(Random random) {
        List<Task> tasks = new ArrayList<>();
        int groups = 1 + random.nextInt(3);
        int partitions = 1 + random.nextInt(8);
        boolean weighted = random.nextInt(4) == 0;
        for (int group = 0; group < groups; group++) {
            boolean stateful = group == 0 || random.nextInt(3) > 0;
            for (int partition = 0; partition < partitions; partition++) {
                tasks.add(new Task(group + "_" + partition, "" + group, stateful, weighted ? 1 + random.nextInt(3) : 1));
            }
        }
        Settings settings = new Settings(10_000, random.nextInt(3), 1 + random.nextInt(4), Integer.MAX_VALUE, 1 + random.nextInt(2),
            random.nextInt(4) > 0, 10_000);
        Cluster cluster = new Cluster(tasks, random.nextInt(3) * 60_000L, settings);
        int size = 1 + random.nextInt(4);
        for (int process = 0; process < size; process++) {
            join(cluster, random);
        }
        return cluster;
    }

    private static void join(Cluster cluster, Random random) {
        cluster.nodes.putIfAbsent("p" + random.nextInt(9), new Cluster.Node(random.nextInt(3) == 0 ? 2 : 1));
    }

    private static void disturb(Cluster cluster, Random random) {
        for (int step = 0; step < 25; step++) {
            cluster.lagsKnown = random.nextInt(12) > 0;
            switch (random.nextInt(7)) {
                case 0 -> join(cluster, random);
                case 1 -> crash(cluster, random, random.nextBoolean());
                case 2 -> cluster.announcement = leave(cluster, random);
                case 3 -> cluster.announcement = random.nextBoolean() ? Announcement.empty() : Announcement.unknown();
                case 4 -> removeEmptied(cluster);
                default -> { }
            }
            cluster.rebalance();
            IntStream.range(0, random.nextInt(3)).forEach(turn -> cluster.tick());
        }
        cluster.lagsKnown = true;
    }

    private static void crash(Cluster cluster, Random random, boolean keepsItsVolume) {
        if (cluster.nodes.size() < 2) {
            return;
        }
        String victim = new ArrayList<>(cluster.nodes.keySet()).get(random.nextInt(cluster.nodes.size()));
        Cluster.Node old = cluster.nodes.remove(victim);
        if (keepsItsVolume) {
            Cluster.Node back = new Cluster.Node(old.threads);
            back.positions.putAll(old.positions);
            cluster.nodes.put(victim, back);
        }
    }

    private static Announcement leave(Cluster cluster, Random random) {
        Set<String> leaving = new HashSet<>();
        cluster.nodes.keySet().stream().filter(process -> random.nextInt(3) == 0).forEach(leaving::add);
        return new Announcement(Announcement.State.SET, leaving, random.nextBoolean(), 30_000);
    }

    private static void removeEmptied(Cluster cluster) {
        Group view = cluster.view();
        cluster.nodes.entrySet().removeIf(node -> InvariantChecker.leaves(view, node.getKey()) && node.getValue().actives.isEmpty());
        if (cluster.nodes.isEmpty()) {
            cluster.nodes.put("p0", new Cluster.Node(1));
        }
    }

    /** First whatever leaves is emptied, within R + 1 turns; then the group that stays is balanced, within the bound. */
    private static void settle(Cluster cluster) {
        for (int turn = 0; turn < R + 2; turn++) {
            turn(cluster);
        }
        checkEmptied(cluster);
        cluster.announcement = Announcement.empty();
        cluster.rebalance();
        int bound = excess(cluster) * (R + 1) + 1;
        int turns = 0;
        while (cluster.last.followUp().isPresent()) {
            assertTrue(turns++ <= bound, "not converged after " + bound + " turns");
            turn(cluster);
        }
        InvariantChecker.checkBalance(cluster);
        checkFixed(cluster);
    }

    private static void turn(Cluster cluster) {
        cluster.tick();
        cluster.rebalance();
    }

    private static void checkEmptied(Cluster cluster) {
        Group view = cluster.view();
        boolean somebodyStays = cluster.nodes.keySet().stream().anyMatch(process -> !InvariantChecker.leaves(view, process));
        if (somebodyStays) {
            cluster.nodes.forEach((process, node) ->
                assertTrue(!InvariantChecker.leaves(view, process) || node.actives.isEmpty() && node.fed.isEmpty(), process + " was to be emptied"));
        }
    }

    /** No more moves than this are needed for balance, of actives and of standbys. */
    private static int excess(Cluster cluster) {
        int copies = 1 + cluster.settings.standbys();
        return copies * (int) cluster.tasks.stream().filter(Task::stateful).count();
    }

    private static void checkFixed(Cluster cluster) {
        String fixed = Scenario.told(cluster.last);
        int moved = cluster.moved;
        for (int again = 0; again < 3; again++) {
            cluster.rebalance();
            assertEquals(fixed, Scenario.told(cluster.last));
        }
        // Copies that nothing feeds any more fall behind meanwhile; a standby may have counted on one, but no active moves.
        IntStream.range(0, FORGOTTEN).forEach(turn -> turn(cluster));
        int turns = 0;
        while (cluster.last.followUp().isPresent()) {
            assertTrue(turns++ <= excess(cluster) * (R + 1) + 1, "standbys are placed without end");
            turn(cluster);
        }
        for (int again = 0; again < FORGOTTEN; again++) {
            turn(cluster);
            assertEquals(Optional.empty(), cluster.last.followUp());
        }
        assertEquals(moved, cluster.moved);
    }

    @Test
    void aGroupThatIsStartedAtOnceIsBalancedAtOnce() {
        Cluster cluster = new Cluster(IntStream.range(0, 12).mapToObj(n -> new Task("0_" + n, "0", true, 1)).toList(), 0, Settings.DEFAULT);
        IntStream.range(0, 4).forEach(n -> cluster.nodes.put("p" + n, new Cluster.Node(1)));
        cluster.rebalance();
        assertEquals(1, cluster.rebalances);
        cluster.nodes.keySet().forEach(process -> assertEquals(3, cluster.load(process)));
    }

    @Test
    void fromFourToThreeOnlyTheOrphanedQuarterMoves() {
        Cluster cluster = new Cluster(IntStream.range(0, 48).mapToObj(n -> new Task("0_" + n, "0", true, 1)).toList(), 60_000, Settings.DEFAULT);
        IntStream.range(0, 4).forEach(n -> cluster.nodes.put("p" + n, new Cluster.Node(1)));
        cluster.rebalance();
        IntStream.range(0, 3).forEach(n -> cluster.tick());
        cluster.announcement = Announcement.leaving(Set.of("p3"), 30_000);
        IntStream.range(0, 4).forEach(n -> turn(cluster));
        assertEquals(12, cluster.moved);
        assertEquals(0, cluster.load("p3"));
        cluster.nodes.remove("p3");
        cluster.announcement = Announcement.empty();
        IntStream.range(0, 4).forEach(n -> turn(cluster));
        assertEquals(12, cluster.moved);
    }
}
