package dev.streamapp.agent.report;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.streamapp.agent.announcement.Announcements;
import dev.streamapp.agent.assignor.Rounds;
import dev.streamapp.agent.kafka.Aside;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/** Puts a report together: the last look, and what is true at the moment of the answer. */
public final class Report {

    private final String podUid;
    private final String version;
    private final String incarnation = UUID.randomUUID().toString();
    private final Announcements announcements;
    private final Rounds rounds;

    public Report(String podUid, Announcements announcements, Rounds rounds) {
        this.podUid = podUid;
        String implementation = Report.class.getPackage().getImplementationVersion();
        this.version = implementation == null ? "unknown" : implementation;
        this.announcements = announcements;
        this.rounds = rounds;
    }

    /** The report as {@code report.schema.json} has it. */
    public JsonObject of(Look look, boolean complete) {
        JsonObject agent = new JsonObject();
        agent.addProperty("version", version);
        agent.addProperty("java", System.getProperty("java.version", "unknown"));
        if (!podUid.isEmpty()) {
            agent.addProperty("podUid", podUid);
        }
        agent.addProperty("incarnation", incarnation);
        agent.addProperty("sequence", look.sequence());
        agent.addProperty("ageMillis", TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - look.beganAt()));
        JsonObject report = new JsonObject();
        report.addProperty("version", 1);
        report.add("agent", agent);
        report.add("announcement", announcements.now().json());
        report.add("instances", withRounds(look.instances()));
        JsonArray asides = new JsonArray();
        if (!complete) {
            asides.add(new Aside("configuration", "an instance of this JVM could not be taken; this report does not show it", Aside.Kind.Failed).json());
        }
        report.add("asides", asides);
        return report;
    }

    private JsonArray withRounds(JsonArray instances) {
        JsonArray all = new JsonArray();
        for (JsonElement element : instances) {
            JsonObject instance = element.getAsJsonObject();
            JsonObject round = rounds.last(instance.get("applicationId").getAsString());
            if (round != null && instance.has("assignor")) {
                instance = instance.deepCopy();
                instance.getAsJsonObject("assignor").add("lastRound", round);
            }
            all.add(instance);
        }
        return all;
    }
}
