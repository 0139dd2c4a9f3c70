package dev.streamapp.assignor.bench;

import dev.streamapp.assignor.LearnerTaskAssignor;
import dev.streamapp.assignor.core.Cluster;
import dev.streamapp.assignor.core.LearnerAssignment;
import dev.streamapp.assignor.core.model.Announcement;
import dev.streamapp.assignor.core.model.AssignmentResult;
import dev.streamapp.assignor.core.model.Group;
import dev.streamapp.assignor.core.model.Settings;
import dev.streamapp.assignor.core.model.Task;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import java.util.function.Function;
import java.util.stream.IntStream;

/**
 * Measures one assignment, and counts what moves, beside Kafka's own assignors on the same group.
 *
 * <p>The group is a model; the assignors are the real classes. No limit on copies for any of them, so that each settles in a few rounds.
 */
public final class Bench {

    private static final int MOST_TURNS = 12;
    private static final int TIMED = 7;

    /** The stock assignor takes many seconds for one assignment of more tasks: then it is asked for two steps only. */
    private static final int LONG_FOR_STOCK = 1_000;

    private record Size(int tasks, int processes) {}

    private record Step(String name, int from, int to) {}

    private record Result(int changes, int cold, int rebalances, List<Long> nanos) {}

    private Bench() {}

    /** Print the tables in Markdown. */
    public static void main(String[] arguments) {
        System.out.println("| tasks | step | least | assignor | actives moved | of them cold | rebalances | one assignment, median / worst (ms) |");
        System.out.println("| ---: | --- | ---: | --- | ---: | ---: | ---: | ---: |");
        for (Size size : List.of(new Size(48, 4), new Size(500, 20), new Size(5_000, 200))) {
            int all = size.processes();
            for (Step step : List.of(new Step("one less", all, all - 1), new Step("half", all, all / 2), new Step("one more", all - 1, all),
                new Step("double", all / 2, all))) {
                compare(size, step);
            }
        }
        System.out.println("\n| tasks | processes | through Kafka's interface, median / worst (ms) |\n| ---: | ---: | ---: |");
        for (Size size : List.of(new Size(48, 4), new Size(500, 20), new Size(5_000, 200))) {
            System.out.printf("| %d | %d | %s |%n", size.tasks(), size.processes(), adapter(size));
        }
    }

    private static void compare(Size size, Step step) {
        int least = step.from() > step.to() ? owned(size, step.from(), step.to()) : size.tasks() - size.tasks() * step.from() / step.to();
        report(size, step, least, "ours", run(size, step, LearnerAssignment::assign, true));
        if (size.tasks() > LONG_FOR_STOCK && step.name().matches("half|double")) {
            return;
        }
        report(size, step, least, "HighAvailability", run(size, step, KafkaAssignors::highAvailability, false));
        report(size, step, least, "Sticky", run(size, step, KafkaAssignors::sticky, false));
    }

    private static void report(Size size, Step step, int least, String name, Result result) {
        System.out.printf("| %d | %d to %d (%s) | %d | %s | %d | %d | %d | %s |%n", size.tasks(), step.from(), step.to(), step.name(), least, name,
            result.changes(), result.cold(), result.rebalances(), told(result.nanos()));
    }

    /** Return how many tasks the processes have that go, where all have their fair share. */
    private static int owned(Size size, int from, int to) {
        return IntStream.range(to, from).map(n -> (size.tasks() + from - 1 - n) / from).sum();
    }

    private static String name(List<UUID> ids, int number) {
        return ids.get(number).toString();
    }

    private static Result run(Size size, Step step, Function<Group, AssignmentResult> assignor, boolean announced) {
        List<UUID> ids = ids(size.processes());
        List<Long> nanos = new ArrayList<>();
        Cluster cluster = cluster(size, step.from(), ids);
        cluster.assignor = group -> timed(assignor, group, nanos);
        settle(cluster);
        nanos.clear();
        cluster.changes = 0;
        cluster.coldStarts = 0;
        cluster.rebalances = 0;
        Set<String> leaving = new HashSet<>();
        IntStream.range(step.to(), Math.max(step.to(), step.from())).forEach(n -> leaving.add(name(ids, n)));
        IntStream.range(step.from(), Math.max(step.to(), step.from())).forEach(n -> cluster.nodes.put(name(ids, n), new Cluster.Node(1)));
        if (announced && !leaving.isEmpty()) {
            cluster.announcement = Announcement.leaving(leaving, 30_000);
            settle(cluster);
            cluster.announcement = Announcement.empty();
        }
        cluster.nodes.keySet().removeAll(leaving);
        settle(cluster);
        return new Result(cluster.changes, cluster.coldStarts, cluster.rebalances, nanos);
    }

    private static List<UUID> ids(int number) {
        Random random = new Random(5);
        return IntStream.range(0, number).mapToObj(n -> new UUID(random.nextLong(), random.nextLong())).toList();
    }

    private static Cluster cluster(Size size, int processes, List<UUID> ids) {
        List<Task> tasks = IntStream.range(0, size.tasks()).mapToObj(n -> new Task("0_" + n, "0", true, 1)).toList();
        Cluster cluster = new Cluster(tasks, 100_000, new Settings(10_000, 0, 100_000, 100_000, 1, true, 10_000));
        cluster.isChecked = false;
        IntStream.range(0, processes).forEach(n -> cluster.nodes.put(name(ids, n), new Cluster.Node(1)));
        return cluster;
    }

    private static AssignmentResult timed(Function<Group, AssignmentResult> assignor, Group group, List<Long> nanos) {
        long began = System.nanoTime();
        AssignmentResult result = assignor.apply(group);
        nanos.add(System.nanoTime() - began);
        return result;
    }

    private static void settle(Cluster cluster) {
        cluster.rebalance();
        for (int turn = 0; turn < MOST_TURNS && (turn < 4 || waits(cluster)); turn++) {
            cluster.tick();
            if (waits(cluster)) {
                cluster.rebalance();
            }
        }
    }

    private static boolean waits(Cluster cluster) {
        return cluster.last.followUp().filter(wish -> wish.purpose() == AssignmentResult.Purpose.LEARNING).isPresent();
    }

    private static String adapter(Size size) {
        List<UUID> ids = ids(size.processes());
        Cluster cluster = cluster(size, size.processes(), ids);
        settle(cluster);
        KafkaAssignors.State state = new KafkaAssignors.State(cluster.view());
        List<Long> nanos = new ArrayList<>();
        for (int again = 0; again < TIMED; again++) {
            LearnerTaskAssignor assignor = new LearnerTaskAssignor();
            long began = System.nanoTime();
            assignor.assign(state);
            nanos.add(System.nanoTime() - began);
        }
        return told(nanos);
    }

    private static String told(List<Long> nanos) {
        List<Long> sorted = new ArrayList<>(nanos);
        Collections.sort(sorted);
        return String.format("%.1f / %.1f", sorted.get(sorted.size() / 2) / 1e6, sorted.get(sorted.size() - 1) / 1e6);
    }
}
