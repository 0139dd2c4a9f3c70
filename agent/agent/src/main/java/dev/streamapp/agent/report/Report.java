package dev.streamapp.agent.report;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.streamapp.agent.announcement.AnnouncementState;
import dev.streamapp.agent.assignor.AssignorRounds;
import dev.streamapp.agent.heartbeat.HeartbeatCap;
import dev.streamapp.agent.instance.TaskTimes;
import dev.streamapp.agent.kafka.Limitation;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/** Builds the report from the last probe and from the values at the moment of the request. */
public final class Report {

    private final String podUid;
    private final String version;
    private final String incarnation = UUID.randomUUID().toString();
    private final ContainerMemory memory = new ContainerMemory();
    private final News news;

    /** The parts that change between two probes. */
    public record News(AnnouncementState announcementState, AssignorRounds rounds, TaskTimes taskTimes, HeartbeatCap heartbeatCap) { }

    public Report(String podUid, News news) {
        this.podUid = podUid;
        String implementation = Report.class.getPackage().getImplementationVersion();
        this.version = implementation == null ? "unknown" : implementation;
        this.news = news;
    }

    /**
     * Returns a report in the form of {@code report.schema.json}.
     *
     * @param askedAt when the request came, by System.nanoTime: the reader counts the times of tasks back from it
     */
    public JsonObject of(Probe probe, boolean complete, long askedAt) {
        JsonObject agent = new JsonObject();
        agent.addProperty("version", version);
        agent.addProperty("java", System.getProperty("java.version", "unknown"));
        if (!podUid.isEmpty()) {
            agent.addProperty("podUid", podUid);
        }
        agent.addProperty("incarnation", incarnation);
        agent.addProperty("sequence", probe.sequence());
        agent.addProperty("ageMillis", TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - probe.beganAt()));
        JsonObject report = new JsonObject();
        report.addProperty("version", 1);
        report.add("agent", agent);
        report.add("announcement", news.announcementState().now().json());
        JsonObject heartbeat = news.heartbeatCap().json();
        if (heartbeat != null) {
            report.add("heartbeat", heartbeat);
        }
        memory.addTo(report);
        report.add("instances", withNews(probe.instances(), askedAt));
        JsonArray limitations = new JsonArray();
        if (!complete) {
            limitations.add(new Limitation("configuration", "an instance of this JVM could not be taken; this report does not show it", Limitation.Kind.Failed).json());
        }
        report.add("asides", limitations);
        return report;
    }

    private JsonArray withNews(JsonArray instances, long askedAt) {
        JsonArray all = new JsonArray();
        for (JsonElement element : instances) {
            JsonObject instance = element.getAsJsonObject().deepCopy();
            JsonObject round = news.rounds().last(instance.get("applicationId").getAsString());
            if (round != null && instance.has("assignor")) {
                instance.getAsJsonObject("assignor").add("lastRound", round);
            }
            if (instance.has("clientId")) {
                instance.add("taskTimes", news.taskTimes().json(instance.get("clientId").getAsString(), askedAt));
            }
            if (instance.get("protocol").getAsString().equals("streams")) {
                addHeartbeat(instance);
            }
            all.add(instance);
        }
        return all;
    }

    private void addHeartbeat(JsonObject instance) {
        String whyNot = news.heartbeatCap().whyNot();
        if (instance.get("clientState").getAsString().equals("RUNNING") && !whyNot.isEmpty()) {
            instance.getAsJsonArray("asides").add(new Limitation("heartbeatCap", whyNot, Limitation.Kind.Failed).json());
        }
    }
}
