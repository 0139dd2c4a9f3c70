package dev.streamapp.agent.announcement;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import dev.streamapp.agent.announcement.Announcement.Epoch;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * The current announcement: unknown, empty or set.
 *
 * <p>The HTTP threads, the assignor's thread and the closing thread call it. Time is monotonic.
 */
public final class AnnouncementState {

    /** How long a new JVM without an announcement stays {@code unknown}. After that no operator exists, and no process leaves. */
    static final long UNKNOWN_SECONDS = 60;
    private final LongSupplier nanoTime;
    private final long bornAt;
    private Announcement last;
    private long takenAt;

    /** The answer to an offered announcement. */
    public enum Verdict { TAKEN, LOWER_EPOCH, OTHER_CONTENT }

    /** The state at one moment. {@code last} is null before the first announcement; {@code expiresInMillis} is valid in the state {@code set}. */
    public record Snapshot(String state, Announcement last, long expiresInMillis) {

        public List<String> leaving() {
            return state.equals("set") ? last.processIds() : List.of();
        }

        public JsonObject json() {
            JsonObject json = new JsonObject();
            json.addProperty("state", state);
            if (last != null) {
                json.add("epoch", last.epoch().json());
            }
            if (state.equals("set")) {
                JsonArray ids = new JsonArray();
                last.processIds().forEach(ids::add);
                json.add("processIds", ids);
                json.addProperty("rebalance", last.rebalance());
                json.addProperty("expiresInMillis", expiresInMillis);
            }
            return json;
        }

        /** Returns the state in types of the JDK: the class loader of the assignor may not see the agent. */
        public Map<String, Object> asMap() {
            Map<String, Object> map = new HashMap<>();
            map.put("state", state);
            map.put("processIds", leaving());
            if (state.equals("set")) {
                map.put("expiresInMillis", expiresInMillis);
            }
            if (last != null) {
                map.put("rebalance", last.rebalance());
                map.put("lease", last.epoch().lease());
                map.put("counter", last.epoch().counter());
            }
            return map;
        }
    }

    public AnnouncementState(LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
        this.bornAt = nanoTime.getAsLong();
    }

    /** Accepts or renews an announcement. It refuses a lower epoch, and the same epoch with other content. */
    public synchronized Verdict offer(Announcement announcement) {
        if (last != null) {
            int order = announcement.epoch().compareTo(last.epoch());
            if (order < 0) {
                return Verdict.LOWER_EPOCH;
            }
            if (order == 0 && !announcement.sameContent(last)) {
                return Verdict.OTHER_CONTENT;
            }
        }
        last = announcement;
        takenAt = nanoTime.getAsLong();
        return Verdict.TAKEN;
    }

    /** Returns the highest accepted epoch, or null. */
    public synchronized Epoch highest() {
        return last == null ? null : last.epoch();
    }

    public synchronized Snapshot now() {
        long now = nanoTime.getAsLong();
        if (last == null) {
            boolean young = now - bornAt < TimeUnit.SECONDS.toNanos(UNKNOWN_SECONDS);
            return new Snapshot(young ? "unknown" : "empty", null, 0);
        }
        long left = TimeUnit.SECONDS.toNanos(last.ttlSeconds()) - (now - takenAt);
        boolean holds = left > 0 && !last.processIds().isEmpty();
        return new Snapshot(holds ? "set" : "empty", last, Math.max(0, TimeUnit.NANOSECONDS.toMillis(left)));
    }
}
