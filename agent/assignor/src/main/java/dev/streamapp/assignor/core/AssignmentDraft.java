package dev.streamapp.assignor.core;

import dev.streamapp.assignor.core.model.Announcement;
import dev.streamapp.assignor.core.model.AssignmentResult;
import dev.streamapp.assignor.core.model.Group;
import dev.streamapp.assignor.core.model.Process;
import dev.streamapp.assignor.core.model.Task;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntPredicate;

/**
 * The group in numbers while one assignment is made: owners, actives, targets and loads.
 *
 * <p>An index of a task or process is its position in the group's list. The draft is mutable, and one round uses it.
 */
final class AssignmentDraft {

    static final int NONE = -1;

    /** An unknown lag. */
    static final long UNKNOWN = -1;

    final Group group;
    final Task[] tasks;
    final Process[] processes;

    /** Whether the process keeps tasks after this step. */
    final boolean[] stays;

    /** Whether all processes leave. Then all stay, since the tasks need processes. */
    final boolean allLeave;

    /** By task, the process that had the active, or {@link #NONE}. */
    final int[] owner;

    /** By task, the process that gets the active. */
    final int[] active;

    /** By task, the process that will have the active once all learners are ready. */
    final int[] target;

    /** By process, the weight of the stateful tasks with this target. */
    final long[] load;

    final List<AssignmentResult.Move> moves = new ArrayList<>();

    private final long[][] lags;
    private final BitSet[] copies;
    private final int[] subtopology;
    private final int[][] alike;

    AssignmentDraft(Group group) {
        this.group = group;
        tasks = group.tasks().toArray(Task[]::new);
        processes = group.processes().toArray(Process[]::new);
        stays = new boolean[processes.length];
        allLeave = !markStaying();
        owner = filled();
        active = filled();
        target = filled();
        load = new long[processes.length];
        lags = new long[tasks.length][];
        copies = new BitSet[tasks.length];
        subtopology = new int[tasks.length];
        alike = new int[processes.length][number()];
        readMembers();
    }

    private int[] filled() {
        int[] nobody = new int[tasks.length];
        Arrays.fill(nobody, NONE);
        return nobody;
    }

    private boolean markStaying() {
        boolean some = false;
        boolean set = group.announcement().state() == Announcement.State.SET;
        for (int process = 0; process < processes.length; process++) {
            stays[process] = !set || !group.announcement().leaving().contains(processes[process].id());
            some |= stays[process];
        }
        if (!some) {
            Arrays.fill(stays, true);
        }
        return some;
    }

    /** Number the sub-topologies, and return how many there are. */
    private int number() {
        Map<String, Integer> numbers = new HashMap<>();
        for (int task = 0; task < tasks.length; task++) {
            Integer next = numbers.size();
            Integer known = numbers.putIfAbsent(tasks[task].group(), next);
            subtopology[task] = known == null ? next : known;
        }
        return numbers.size();
    }

    private void readMembers() {
        Map<String, Integer> places = new HashMap<>();
        for (int task = 0; task < tasks.length; task++) {
            places.put(tasks[task].id(), task);
            copies[task] = new BitSet(processes.length);
            if (tasks[task].stateful()) {
                lags[task] = new long[processes.length];
                Arrays.fill(lags[task], UNKNOWN);
            }
        }
        for (int process = 0; process < processes.length; process++) {
            int reader = process;
            processes[process].lags().forEach((id, lag) -> readLag(places.get(id), reader, lag));
            processes[process].standbys().forEach(id -> markCopy(places.get(id), reader));
            processes[process].actives().forEach(id -> markCopy(places.get(id), reader));
        }
        for (int process = 0; process < processes.length; process++) {
            int claimant = process;
            processes[process].actives().forEach(id -> claim(places.get(id), claimant));
        }
    }

    private void readLag(Integer task, int process, long lag) {
        if (task != null && tasks[task].stateful()) {
            lags[task][process] = lag == Process.RUNNING ? 0 : Math.max(UNKNOWN, lag);
        }
    }

    private void markCopy(Integer task, int process) {
        if (task != null) {
            copies[task].set(process);
        }
    }

    /** Of several processes that claim the active, the running one wins; else the first that stays; else the first. */
    private void claim(Integer task, int process) {
        if (task == null) {
            return;
        }
        int known = owner[task];
        if (known == NONE || !runs(task, known) && (runs(task, process) || stays[process] && !stays[known])) {
            owner[task] = process;
        }
    }

    private boolean runs(int task, int process) {
        Long lag = processes[process].lags().get(tasks[task].id());
        return lag != null && lag == Process.RUNNING;
    }

    boolean isStateful(int task) {
        return tasks[task].stateful();
    }

    /** Return whether the process could process the task at once. */
    boolean isReady(int task, int process) {
        if (!isStateful(task)) {
            return true;
        }
        long lag = lags[task][process];
        return lag != UNKNOWN && lag <= group.settings().acceptableLag();
    }

    /** Return in how many milliseconds the process counts as warm; 0 if it does now. */
    long coldMillis(int process) {
        return processes[process].coldMillis();
    }

    /** Return whether the process has any state of the task. */
    boolean hasCopy(int task, int process) {
        return copies[task].get(process);
    }

    /** Return the processes that have any state of the task. */
    BitSet copies(int task) {
        return copies[task];
    }

    boolean lagIsKnown(int task, int process) {
        return isStateful(task) && lags[task][process] != UNKNOWN;
    }

    /** Return the lag for comparing, unknown ones last. */
    long lag(int task, int process) {
        long lag = isStateful(task) ? lags[task][process] : 0;
        return lag == UNKNOWN ? Long.MAX_VALUE : lag;
    }

    /** Set the target process of the task, and count the task there. */
    void setTarget(int task, int process) {
        count(task, target[task], -1);
        target[task] = process;
        count(task, process, 1);
    }

    private void count(int task, int process, int by) {
        if (process != NONE) {
            alike[process][subtopology[task]] += by;
            load[process] += isStateful(task) ? (long) by * tasks[task].weight() : 0;
        }
    }

    int threads(int process) {
        return processes[process].threads();
    }

    /** Return how many tasks of the same sub-topology have this target. */
    int alike(int task, int process) {
        return alike[process][subtopology[task]];
    }

    /** Return the process with the most room for the task by these loads, of those that may have it, or {@link #NONE}. */
    int roomiest(int task, long[] loads, IntPredicate may) {
        int best = NONE;
        for (int process = 0; process < processes.length; process++) {
            if (may.test(process) && (best == NONE || hasMoreRoom(task, loads, process, best))) {
                best = process;
            }
        }
        return best;
    }

    private boolean hasMoreRoom(int task, long[] loads, int process, int than) {
        int weight = tasks[task].weight();
        int order = Long.compare((loads[process] + weight) * threads(than), (loads[than] + weight) * threads(process));
        if (order == 0) {
            order = Integer.compare(alike(task, process), alike(task, than));
        }
        return order < 0;
    }

    /** Return whether one task of this weight is better off at the other process, by more than the tolerance. */
    boolean relieves(long[] loads, int from, int to, int weight) {
        long slack = group.settings().tolerance() - 1L;
        return (loads[from] - weight) * threads(to) >= (loads[to] + weight) * threads(from) + slack * threads(from) * threads(to);
    }

    /** Give the active to a process, and record a move if another process had it. */
    void setActive(int task, int process, String why) {
        active[task] = process;
        if (owner[task] != process) {
            String from = owner[task] == NONE ? "" : processes[owner[task]].id();
            moves.add(new AssignmentResult.Move(tasks[task].id(), from, processes[process].id(), why));
        }
    }
}
