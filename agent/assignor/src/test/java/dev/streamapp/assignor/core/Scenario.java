package dev.streamapp.assignor.core;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.streamapp.assignor.core.model.Announcement;
import dev.streamapp.assignor.core.model.AssignmentResult;
import dev.streamapp.assignor.core.model.Group;
import dev.streamapp.assignor.core.model.Process;
import dev.streamapp.assignor.core.model.Settings;
import dev.streamapp.assignor.core.model.Task;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;

/** Reads the scenario files; their README tells the form. */
record Scenario(String name, JsonNode story, JsonNode round) {

    private static final Path FILES = Path.of("src/test/resources/scenarios");
    private static final long WITHOUT_A_COPY = 100_000;

    static Stream<Scenario> all() {
        try (Stream<Path> files = Files.list(FILES)) {
            return files.filter(file -> file.toString().endsWith(".json")).sorted().flatMap(Scenario::rounds).toList().stream();
        } catch (IOException broken) {
            throw new UncheckedIOException(broken);
        }
    }

    private static Stream<Scenario> rounds(Path file) {
        try {
            JsonNode story = new ObjectMapper().readTree(Files.readString(file));
            List<Scenario> rounds = new ArrayList<>();
            story.get("rounds").forEach(round -> rounds.add(new Scenario(file.getFileName() + ": " + round.get("why").asText(), story, round)));
            return rounds.stream();
        } catch (IOException broken) {
            throw new UncheckedIOException(broken);
        }
    }

    Group group() {
        List<Task> tasks = new ArrayList<>();
        story.get("tasks").properties().forEach(entry -> tasks.add(task(entry.getKey(), entry.getValue())));
        List<Process> processes = new ArrayList<>();
        round.get("processes").properties().forEach(entry -> processes.add(process(entry.getKey(), entry.getValue(), tasks)));
        return new Group(processes, tasks, round.path("lagsKnown").asBoolean(true), announcement(), settings());
    }

    private static Task task(String id, JsonNode node) {
        String group = id.contains("_") ? id.substring(0, id.indexOf('_')) : "";
        return new Task(id, node.path("group").asText(group), node.path("stateful").asBoolean(true), node.path("weight").asInt(1));
    }

    private static Process process(String id, JsonNode node, List<Task> tasks) {
        Set<String> actives = names(node.path("actives"));
        Set<String> standbys = names(node.path("standbys"));
        Map<String, Long> lags = new HashMap<>();
        for (Task task : tasks) {
            JsonNode written = node.path("lags").path(task.id());
            long usual = actives.contains(task.id()) ? Process.RUNNING : standbys.contains(task.id()) ? 0 : WITHOUT_A_COPY;
            if (task.stateful() && !written.isNull()) {
                lags.put(task.id(), written.asLong(usual));
            }
        }
        return new Process(id, node.path("threads").asInt(1), actives, standbys, lags, node.path("coldMillis").asLong());
    }

    private Announcement announcement() {
        JsonNode node = round.path("announcement");
        Announcement.State state = Announcement.State.valueOf(node.path("state").asText("empty").toUpperCase(java.util.Locale.ROOT));
        return new Announcement(state, names(node.path("leaving")), node.path("eager").asBoolean(), node.path("expiresInMillis").asLong(30_000));
    }

    private Settings settings() {
        JsonNode node = round.has("settings") ? round.get("settings") : story.path("settings");
        Settings usual = Settings.DEFAULT;
        return new Settings(
            node.path("acceptableLag").asLong(usual.acceptableLag()),
            node.path("standbys").asInt(usual.standbys()),
            node.path("balanceLearners").asInt(usual.balanceLearners()),
            node.path("leavingLearners").asInt(usual.leavingLearners()),
            node.path("tolerance").asInt(usual.tolerance()),
            node.path("levelsStandbys").asBoolean(usual.levelsStandbys()),
            node.path("followUpMillis").asLong(usual.followUpMillis()));
    }

    private static Set<String> names(JsonNode list) {
        Set<String> names = new HashSet<>();
        list.forEach(name -> names.add(name.asText()));
        return names;
    }

    /** Return what is expected, written in the form of {@link #told}. */
    String expected() {
        JsonNode node = round.get("expected");
        Map<String, Set<String>> actives = new TreeMap<>();
        node.get("actives").properties().forEach(entry -> actives.put(entry.getKey(), new TreeSet<>(names(entry.getValue()))));
        Map<String, Set<String>> standbys = new TreeMap<>();
        node.get("standbys").properties().forEach(entry -> standbys.put(entry.getKey(), new TreeSet<>(names(entry.getValue()))));
        return "actives " + actives + "\nstandbys " + standbys + "\nlearners " + new TreeSet<>(names(node.get("learners")))
            + "\nmoved " + node.get("moved").asLong() + "\nfollow-up " + node.path("followUp").asText("none") + "\nwarm in "
            + node.path("warmIn").asText("none") + "\nfell back ";
    }

    /** Write an outcome so that it can be compared as a whole. */
    static String told(AssignmentResult result) {
        Map<String, Set<String>> actives = new TreeMap<>();
        Map<String, Set<String>> standbys = new TreeMap<>();
        result.placements().forEach((process, placement) -> {
            actives.put(process, new TreeSet<>(placement.actives()));
            if (!placement.standbys().isEmpty()) {
                standbys.put(process, new TreeSet<>(placement.standbys()));
            }
        });
        Set<String> learners = new TreeSet<>();
        result.learners().forEach(one -> learners.add(one.task() + " " + one.process() + (one.ready() ? " ready" : " learning")));
        String followUp = result.followUp().map(wish -> wish.purpose().word() + " " + wish.millis()).orElse("none");
        return "actives " + actives + "\nstandbys " + standbys + "\nlearners " + learners + "\nmoved " + result.moved()
            + "\nfollow-up " + followUp + "\nwarm in " + result.warmInMillis().map(String::valueOf).orElse("none") + "\nfell back " + result.fellBack();
    }

    @Override
    public String toString() {
        return name;
    }
}
