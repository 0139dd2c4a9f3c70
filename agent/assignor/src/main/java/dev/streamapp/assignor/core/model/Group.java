package dev.streamapp.assignor.core.model;

import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;

/**
 * All that one assignment is made from.
 *
 * @param processes kept in the order of their IDs; of two with one ID the first
 * @param tasks in their order; of two with one ID the first
 * @param lagsKnown whether the lags could be read at all in this round
 * @param announcement who leaves
 * @param settings what the user set
 */
public record Group(List<Process> processes, List<Task> tasks, boolean lagsKnown, Announcement announcement, Settings settings) {

    /** Fills what is missing, drops nulls and doubles, and puts the processes into order. */
    public Group {
        processes = distinct(processes, Process::id).stream().sorted(Comparator.comparing(Process::id)).toList();
        tasks = distinct(tasks, Task::id);
        announcement = Objects.requireNonNullElseGet(announcement, Announcement::unknown);
        settings = Objects.requireNonNullElse(settings, Settings.DEFAULT);
    }

    private static <T> List<T> distinct(List<T> items, Function<T, String> name) {
        Map<String, T> first = new LinkedHashMap<>();
        for (T item : items == null ? List.<T>of() : items) {
            if (item != null) {
                first.putIfAbsent(name.apply(item), item);
            }
        }
        return List.copyOf(first.values());
    }
}
