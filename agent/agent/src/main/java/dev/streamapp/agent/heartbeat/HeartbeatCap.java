package dev.streamapp.agent.heartbeat;

import com.google.gson.JsonObject;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.OptionalLong;
import java.util.WeakHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Shortens the heartbeat interval of streams group members while the operator asks for it.
 *
 * <p>A member learns of a new task from the answer to a heartbeat, and brokers set its interval: 5 s at least. Each answer gives that interval
 * anew, so a cap that has ended needs no repair: the next answer ends it. The members' network threads and the HTTP threads call this class.
 */
public final class HeartbeatCap {

    /** A network thread that has not asked for so long belongs to a closed consumer: it asks at each heartbeat at the latest. */
    private static final long CURRENT_NANOS = TimeUnit.SECONDS.toNanos(30);
    /** It caches nothing beyond the life of Kafka's class. */
    private static final ClassValue<Method[]> METHODS = new ClassValue<>() {
        @Override
        protected Method[] computeValue(Class<?> type) {
            try {
                return new Method[] {type.getMethod("heartbeatIntervalMs"), type.getMethod("updateHeartbeatIntervalMs", long.class)};
            } catch (NoSuchMethodException e) {
                return new Method[0];
            }
        }
    };
    private final boolean enabled;
    private final LongSupplier nanoTime;
    private final Map<Object, Seen> members = new WeakHashMap<>();
    private volatile Cap cap;
    private volatile String failure = "the heartbeats of this release could not be advised";

    private record Cap(int millis, long endsAt) { }

    /** The interval of one member after its last look, by System.nanoTime. */
    private record Seen(long millis, long at) { }

    /**
     * Creates the cap, without one in effect.
     *
     * @param enabled whether the user lets the agent change heartbeats
     */
    public HeartbeatCap(boolean enabled, LongSupplier nanoTime) {
        this.enabled = enabled;
        this.nanoTime = nanoTime;
    }

    /** Replaces the cap, or ends it. */
    public void offer(CapRequest request) {
        cap = request.ttlSeconds() == 0 ? null : new Cap(request.capMillis(), nanoTime.getAsLong() + TimeUnit.SECONDS.toNanos(request.ttlSeconds()));
    }

    /**
     * Called by a member's network thread before it looks whether a heartbeat is due.
     *
     * @param state Kafka's HeartbeatRequestState: a new interval resets its timer, so that a timer that runs already is shortened too
     */
    public void beforeHeartbeat(Object state) throws ReflectiveOperationException {
        Method[] methods = METHODS.get(state.getClass());
        if (methods.length == 0) {
            failure = "HeartbeatRequestState of this release has other methods";
            return;
        }
        failure = "";
        long interval = (Long) methods[0].invoke(state);
        long now = nanoTime.getAsLong();
        Cap wanted = cap;
        if (enabled && wanted != null && wanted.endsAt() - now > 0 && interval > wanted.millis()) {
            methods[1].invoke(state, (long) wanted.millis());
            interval = wanted.millis();
        }
        if (interval > 0) {   // A member that has not joined has none.
            update(state, new Seen(interval, now));
        }
    }

    private synchronized void update(Object state, Seen seen) {
        members.put(state, seen);
    }

    /** Returns the longest interval in use by a member, in milliseconds, or empty if none is known. */
    synchronized OptionalLong intervalMillis() {
        long now = nanoTime.getAsLong();
        members.values().removeIf(seen -> now - seen.at() > CURRENT_NANOS);
        return members.values().stream().mapToLong(Seen::millis).max();
    }

    /** Returns why members of the streams protocol cannot be capped, or an empty string; valid once an instance runs. */
    public String whyNot() {
        return failure;
    }

    /** Returns the form of the report, or null if the agent caps nothing here. */
    public JsonObject json() {
        if (!enabled || !failure.isEmpty()) {
            return null;
        }
        JsonObject json = new JsonObject();
        intervalMillis().ifPresent(millis -> json.addProperty("intervalMillis", millis));
        Cap current = cap;
        long left = current == null ? 0 : current.endsAt() - nanoTime.getAsLong();
        if (left > 0) {
            json.addProperty("capMillis", current.millis());
            json.addProperty("expiresInMillis", TimeUnit.NANOSECONDS.toMillis(left));
        }
        return json;
    }
}
