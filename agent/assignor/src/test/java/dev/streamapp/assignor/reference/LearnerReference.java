package dev.streamapp.assignor.reference;

import com.fasterxml.jackson.databind.JsonNode;
import dev.streamapp.assignor.core.LearnerAssignment;
import dev.streamapp.assignor.core.model.Announcement;
import dev.streamapp.assignor.core.model.AssignmentResult;
import dev.streamapp.assignor.core.model.Group;
import dev.streamapp.assignor.core.model.Process;
import dev.streamapp.assignor.core.model.Settings;
import dev.streamapp.assignor.core.model.Task;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;

/** Our own assignor, without Kafka. */
final class LearnerReference implements ReferenceMain.Reference {

    @Override
    public Object answer(JsonNode question) {
        List<Task> tasks = new ArrayList<>();
        Questions.entries(question.get("tasks")).forEach(task -> tasks.add(new Task(task.getKey(),
            task.getKey().substring(0, task.getKey().indexOf('_')), task.getValue().get("stateful").asBoolean(), task.getValue().get("weight").asInt())));
        List<Process> processes = new ArrayList<>();
        question.get("clients").forEach(client -> processes.add(process(client)));
        return told(LearnerAssignment.assign(
            new Group(processes, tasks, question.get("lagsKnown").asBoolean(), announcement(question), settings(question.get("settings")))));
    }

    private static Process process(JsonNode client) {
        Map<String, Long> lags = new HashMap<>();
        Questions.entries(client.get("lags")).forEach(lag -> lags.put(lag.getKey(), lag.getValue().asLong()));
        return new Process(client.get("process").asText(), client.get("threads").asInt(),
            Questions.names(client.get("actives")), Questions.names(client.get("copies")), lags, client.path("coldMillis").asLong());
    }

    private static Announcement announcement(JsonNode question) {
        JsonNode node = question.get("announcement");
        Announcement.State state = Announcement.State.valueOf(node.get("state").asText().toUpperCase(Locale.ROOT));
        return new Announcement(state, Questions.names(node.get("leaving")), node.get("eager").asBoolean(), node.get("expiresInMillis").asLong());
    }

    private static Settings settings(JsonNode node) {
        return new Settings(node.get("acceptableLag").asLong(), node.get("standbys").asInt(), node.get("balanceLearners").asInt(),
            node.get("leavingLearners").asInt(), node.get("tolerance").asInt(), node.get("levelsStandbys").asBoolean(),
            node.get("followUpMillis").asLong());
    }

    private static Map<String, Object> told(AssignmentResult result) {
        Map<String, Object> placements = new TreeMap<>();
        result.placements().forEach((process, placement) -> placements.put(process,
            Map.of("actives", new TreeSet<>(placement.actives()), "standbys", new TreeSet<>(placement.standbys()))));
        List<List<Object>> learners = new ArrayList<>();
        result.learners().forEach(learner -> learners.add(List.of(learner.task(), learner.process(), learner.ready())));
        String followUp = result.followUp().map(wish -> wish.purpose().word() + " " + wish.millis()).orElse("none");
        return Map.of("placements", placements, "learners", learners, "followUp", followUp, "fellBack", result.fellBack());
    }
}
