package dev.streamapp.agent.instance;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Derives the tasks of an instance from its metrics. It is pure; the probe calls it.
 *
 * <p>Kafka updates the thread metadata only when a thread turns RUNNING, so the metadata omits restoring tasks.
 */
public final class TaskMetrics {

    /** A task in the form of the report. The state is null if it is unknown or the task is a standby. */
    public record Task(String id, boolean active, String state) { }

    /** The kinds of metrics that a task has. */
    private static final class MetricKinds {
        boolean standby;
        boolean active;
        boolean running;
    }

    private static final Pattern SUBTOPOLOGY = Pattern.compile("^\\s*Sub-topology: (\\d+)(.*)$");
    private static final Pattern STORES = Pattern.compile("\\(stores: \\[([^]]*)]\\)");
    private final Map<String, MetricKinds> kinds = new TreeMap<>();

    /**
     * Adds one metric of the group {@code stream-task-metrics}. A standby has {@code update-total} only. An active has its restore metrics from
     * its creation on, and {@code process-total} from the end of its restoration on.
     */
    public void add(String taskId, String metric) {
        MetricKinds of = kinds.computeIfAbsent(taskId, id -> new MetricKinds());
        switch (metric) {
            case "update-total" -> of.standby = true;
            case "restore-total", "restore-remaining-records-total" -> of.active = true;
            case "process-total" -> of.running = true;
            default -> { }
        }
    }

    /** Returns the tasks by ID. A task that changes its role has both kinds of metrics and counts as active. */
    public List<Task> tasks() {
        List<Task> tasks = new ArrayList<>();
        kinds.forEach((id, of) -> {
            if (of.active || of.running) {
                tasks.add(new Task(id, true, of.running ? "running" : "restoring"));
            } else if (of.standby) {
                tasks.add(new Task(id, false, null));
            }
        });
        return tasks;
    }

    /** Maps store names to subtopology numbers, from a topology description. It omits global stores. */
    static Map<String, String> subtopologies(String description) {
        Map<String, String> stores = new HashMap<>();
        String current = null;
        for (String line : description.split("\n")) {
            Matcher subtopology = SUBTOPOLOGY.matcher(line);
            if (subtopology.matches()) {
                current = subtopology.group(2).contains("global") ? null : subtopology.group(1);
                continue;
            }
            Matcher names = STORES.matcher(line);
            if (current != null && names.find()) {
                for (String name : names.group(1).split(",")) {
                    if (!name.isBlank()) {
                        stores.put(name.trim(), current);
                    }
                }
            }
        }
        return stores;
    }
}
