package dev.streamapp.assignor.core.model;

import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;

/**
 * The input of one assignment.
 *
 * @param processes sorted by ID; of two with the same ID the first
 * @param tasks in their order; of two with the same ID the first
 * @param lagsKnown whether the lags were readable in this round
 * @param announcement the processes that leave
 * @param settings the user's settings
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
