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
 * The state of the announcement: unknown, empty or set. Time is monotonic. Called by the HTTP threads, the assignor's thread and the closing thread.
 */
public final class AnnouncementState {

    /** So long a JVM that was told nothing does not know whether somebody leaves; afterwards there is no operator, and nobody leaves. */
    static final long UNKNOWN_SECONDS = 60;
    private final LongSupplier nanoTime;
    private final long bornAt;
    private Announcement last;
    private long takenAt;

    /** What became of an announcement. */
    public enum Verdict { TAKEN, LOWER_EPOCH, OTHER_CONTENT }

    /** What holds at one moment; {@code last} is null where nothing was ever taken, {@code expiresInMillis} counts only where it is set. */
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

        /** The same in types of the JDK, for the assignor, which may live in a class loader that does not see the agent. */
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

    /** Takes or renews, unless a higher epoch is known or the same one with other content. */
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

    /** The highest epoch that was taken; null where none was. */
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
