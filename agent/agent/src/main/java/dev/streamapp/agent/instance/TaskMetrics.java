package dev.streamapp.agent.instance;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Which tasks an instance has, read from its metrics: the metadata of its threads is renewed only when a thread turns RUNNING, and so is silent about
 * everything that restores. Called by the look; pure.
 */
public final class TaskMetrics {

    /** The task as the report shows it; state is null where it is not known or the task is a standby. */
    public record Task(String id, boolean active, String state) { }

    /** Which kinds of metrics a task has. */
    private static final class MetricKinds {
        boolean standby;
        boolean active;
        boolean running;
    }

    private static final Pattern SUBTOPOLOGY = Pattern.compile("^\\s*Sub-topology: (\\d+)(.*)$");
    private static final Pattern STORES = Pattern.compile("\\(stores: \\[([^]]*)]\\)");
    private final Map<String, MetricKinds> kinds = new TreeMap<>();

    /**
     * Takes one metric of the group {@code stream-task-metrics} in. A standby has {@code update-total} alone; an active has its restore metrics from
     * its creation, and {@code process-total} once its topology is initialised, that is: from the end of its restoration.
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

    /** The tasks by id. One that is handed from one role to the other just now shows both marks and counts as the active that it was or will be. */
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

    /** Store names to the number of their subtopology, out of the text of a topology; stores of global subtopologies are left out. */
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
