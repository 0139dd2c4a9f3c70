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
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;

/**
 * A model of a group: who has which state, how copies catch up, and how the cooperative protocol hands actives over.
 *
 * <p>A task that changes hands is revoked in one rebalance and assigned in the next. Meanwhile no process has it. A closed copy keeps its directory.
 */
public final class Cluster {

    /** Records that a fed copy restores in one turn, and that a running active writes. */
    static final long RESTORED = 40_000;

    static final long WRITTEN = 500;

    /** One process with its directories. */
    public static final class Node {
        final int threads;
        final Set<String> actives = new HashSet<>();
        final Set<String> fed = new HashSet<>();
        final Map<String, Long> positions = new HashMap<>();

        public Node(int threads) {
            this.threads = threads;
        }
    }

    final List<Task> tasks;
    public final Map<String, Node> nodes = new TreeMap<>();
    final Map<String, Long> ends = new HashMap<>();
    public Announcement announcement = Announcement.empty();
    Settings settings;
    boolean lagsKnown = true;
    public AssignmentResult last;
    int moved;
    public int rebalances;

    /** The assignor of the group; {@link InvariantChecker} checks only ours. */
    public Function<Group, AssignmentResult> assignor = LearnerAssignment::assign;

    public boolean isChecked = true;

    /** How often an active began at another process than before, and how often without a ready copy. */
    public int changes;

    public int coldStarts;
    private final Map<String, String> before = new HashMap<>();

    public Cluster(List<Task> tasks, long state, Settings settings) {
        this.tasks = tasks;
        this.settings = settings;
        tasks.forEach(task -> ends.put(task.id(), state));
    }

    public Group view() {
        List<Process> processes = new ArrayList<>();
        nodes.forEach((id, node) -> {
            Set<String> standbys = new HashSet<>(node.positions.keySet());
            standbys.removeAll(node.actives);
            Map<String, Long> lags = new HashMap<>();
            tasks.stream().filter(Task::stateful).forEach(task -> lags.put(task.id(), lag(node, task.id())));
            processes.add(new Process(id, node.threads, node.actives, standbys, lags));
        });
        return new Group(processes, tasks, lagsKnown, announcement, settings);
    }

    private long lag(Node node, String task) {
        long lag = ends.get(task) - node.positions.getOrDefault(task, 0L);
        boolean runs = node.actives.contains(task) && lag == 0;
        if (runs) {
            return Process.RUNNING;
        }
        return lagsKnown ? lag : -3;
    }

    long lag(String process, String task) {
        return lag(nodes.get(process), task);
    }

    boolean isReady(String process, String task) {
        long lag = lag(process, task);
        return lag <= settings.acceptableLag() && lag != -3;
    }

    /** Rebalance until nothing has to be handed over any more. */
    public void rebalance() {
        boolean again = true;
        for (int pairs = 0; again; pairs++) {
            assertTrue(pairs <= 4, "hand-overs follow on hand-overs without end");
            Group view = view();
            last = assignor.apply(view);
            rebalances++;
            moved += (int) last.moved();
            if (isChecked) {
                InvariantChecker.check(this, view, last);
            }
            again = apply(last);
        }
    }

    /** Return whether an active was revoked that another process is to get in the next rebalance. */
    private boolean apply(AssignmentResult result) {
        Map<String, String> owners = owners();
        boolean revoked = false;
        for (Map.Entry<String, AssignmentResult.Placement> part : result.placements().entrySet()) {
            Node node = nodes.get(part.getKey());
            node.fed.clear();
            node.fed.addAll(part.getValue().standbys());
            for (String task : part.getValue().actives()) {
                String owner = owners.get(task);
                if (owner == null) {
                    begin(part.getKey(), task);
                } else if (!owner.equals(part.getKey())) {
                    nodes.get(owner).actives.remove(task);
                    node.fed.add(task);
                    revoked = true;
                }
            }
        }
        nodes.values().forEach(this::open);
        return revoked;
    }

    private void begin(String process, String task) {
        String former = before.put(task, process);
        if (former != null && !former.equals(process)) {
            changes++;
            coldStarts += isReady(process, task) ? 0 : 1;
        }
        nodes.get(process).actives.add(task);
    }

    private void open(Node node) {
        node.fed.removeIf(task -> !ends.containsKey(task));
        for (Task task : tasks) {
            if (task.stateful() && (node.fed.contains(task.id()) || node.actives.contains(task.id()))) {
                node.positions.putIfAbsent(task.id(), 0L);
            }
        }
    }

    Map<String, String> owners() {
        Map<String, String> owners = new HashMap<>();
        nodes.forEach((id, node) -> node.actives.forEach(task -> assertEquals(null, owners.put(task, id), "two owners of " + task)));
        return owners;
    }

    /** Let copies catch up and running actives write. */
    public void tick() {
        for (Task task : tasks) {
            for (Node node : nodes.values()) {
                boolean isFed = node.actives.contains(task.id()) || node.fed.contains(task.id());
                if (task.stateful() && isFed) {
                    node.positions.merge(task.id(), RESTORED, (at, more) -> Math.min(at + more, ends.get(task.id())));
                }
            }
        }
        Map<String, String> owners = owners();
        for (Task task : tasks) {
            Node owner = nodes.get(owners.get(task.id()));
            if (task.stateful() && owner != null && owner.positions.get(task.id()).equals(ends.get(task.id()))) {
                long end = ends.merge(task.id(), WRITTEN, Long::sum);
                owner.positions.put(task.id(), end);
            }
        }
    }

    long load(String process) {
        return tasks.stream().filter(task -> task.stateful() && nodes.get(process).actives.contains(task.id())).mapToLong(Task::weight).sum();
    }
}
