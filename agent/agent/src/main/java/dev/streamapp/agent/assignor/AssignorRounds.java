package dev.streamapp.agent.assignor;

import com.google.gson.JsonObject;
import dev.streamapp.agent.announcement.Announcement;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * The last result that the assignor of this JVM reported, per application.
 *
 * <p>The leader's stream thread and the HTTP threads call it.
 */
public final class AssignorRounds {

    private static final int MAX_APPLICATIONS = 32;
    private static final int MAX_REASON_LENGTH = 500;
    private static final Set<String> STATES = Set.of("unknown", "empty", "set");
    private static final Set<String> REASONS = Set.of("learning", "unknown", "expiry");
    private final LongSupplier nanoTime;
    private final Map<String, Round> rounds = new LinkedHashMap<>();

    /** A reported assignment, and the time of the report. */
    private record Round(JsonObject json, long ageWhenRecorded, long recordedAt) { }

    public AssignorRounds(LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
    }

    /** Records a result. Throws {@link IllegalArgumentException} if a field is missing or violates the report's schema. */
    public synchronized void record(Map<String, Object> round) {
        if (!(round.get("applicationId") instanceof String applicationId)) {
            throw new IllegalArgumentException("a round without applicationId");
        }
        JsonObject json = new JsonObject();
        json.addProperty("announcement", oneOf(round, "announcement", STATES));
        json.addProperty("moved", number(round, "moved"));
        json.addProperty("learning", number(round, "learning"));
        if (round.containsKey("lease") && round.containsKey("counter")) {
            json.add("epoch", new Announcement.Epoch(number(round, "lease"), number(round, "counter")).json());
        } else if (round.get("epoch") instanceof Map<?, ?> epoch) {
            json.add("epoch", new Announcement.Epoch(number(epoch, "lease"), number(epoch, "counter")).json());
        }
        for (String optional : new String[] {"ready", "followUpMillis", "warmInMillis"}) {
            if (round.get(optional) != null) {
                json.addProperty(optional, number(round, optional));
            }
        }
        if (round.get("followUpFor") != null) {
            json.addProperty("followUpFor", oneOf(round, "followUpFor", REASONS));
        }
        String fellBack = String.valueOf(round.getOrDefault("fellBack", ""));
        json.addProperty("fellBack", fellBack.length() <= MAX_REASON_LENGTH ? fellBack : fellBack.substring(0, MAX_REASON_LENGTH));
        rounds.remove(applicationId);
        if (rounds.size() >= MAX_APPLICATIONS) {
            rounds.remove(rounds.keySet().iterator().next());
        }
        long age = round.get("ageMillis") == null ? 0 : number(round, "ageMillis");
        rounds.put(applicationId, new Round(json, age, nanoTime.getAsLong()));
    }

    /** Returns the last result of the application in the form of the report, or null. */
    public synchronized JsonObject last(String applicationId) {
        Round round = rounds.get(applicationId);
        if (round == null) {
            return null;
        }
        JsonObject json = round.json().deepCopy();
        json.addProperty("ageMillis", round.ageWhenRecorded() + TimeUnit.NANOSECONDS.toMillis(nanoTime.getAsLong() - round.recordedAt()));
        return json;
    }

    private static long number(Map<?, ?> map, String key) {
        if (map.get(key) instanceof Number number && number.longValue() >= 0) {
            return number.longValue();
        }
        throw new IllegalArgumentException("a round whose " + key + " is no number from 0 on");
    }

    private static String oneOf(Map<?, ?> map, String key, Set<String> known) {
        if (map.get(key) instanceof String text && known.contains(text)) {
            return text;
        }
        throw new IllegalArgumentException("a round whose " + key + " is unknown");
    }
}
