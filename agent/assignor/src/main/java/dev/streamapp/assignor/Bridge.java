package dev.streamapp.assignor;

import dev.streamapp.assignor.core.model.Announcement;
import dev.streamapp.assignor.core.model.AssignmentResult;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Connects the assignor to the agent of the same JVM.
 *
 * <p>The agent publishes a map in the boot loader, with values in types of the JDK only. Without an agent the application may use {@link #OWN}.
 */
final class Bridge {

    static final String ANNOUNCEMENT = "announcement";
    static final String ROUND = "round";
    static final String MEETING = "dev.streamapp.agent.meeting.Meeting";
    static final String FIELD = "PLACE";

    /** The functions of the application itself, under the same keys. */
    static final Map<String, Object> OWN = new ConcurrentHashMap<>();

    private static final Logger LOG = LoggerFactory.getLogger(Bridge.class);

    private Bridge() {}

    /**
     * An announcement with its epoch.
     *
     * @param epoch {@code lease} and {@code counter}; empty if the agent gave none
     */
    record ReceivedAnnouncement(Announcement announcement, Map<String, Object> epoch) {}

    /** Return the agent's value of the key, else the application's, else null. */
    private static Object lookUp(String key) {
        try {
            return ((Map<?, ?>) Class.forName(MEETING, true, null).getField(FIELD).get(null)).get(key);
        } catch (ClassNotFoundException noAgent) {
            return OWN.get(key);
        } catch (ReflectiveOperationException | RuntimeException | LinkageError broken) {
            return broken;   // The value is unreadable, so nothing moves.
        }
    }

    /**
     * Read which processes leave.
     *
     * @return no process if no agent exists; unknown if the announcement is unreadable, so that no task moves
     */
    static ReceivedAnnouncement readAnnouncement(boolean eager) {
        Object source = lookUp(ANNOUNCEMENT);
        if (source == null) {
            return new ReceivedAnnouncement(new Announcement(Announcement.State.EMPTY, Set.of(), eager, -1), Map.of());
        }
        try {
            return ((Supplier<?>) source).get() instanceof Map<?, ?> values ? read(values, eager) : notUnderstood("it is no map");
        } catch (RuntimeException | LinkageError broken) {
            return notUnderstood(broken.toString());
        }
    }

    private static ReceivedAnnouncement notUnderstood(String why) {
        LOG.warn("the agent's announcement cannot be understood, so nothing moves: {}", why);
        return new ReceivedAnnouncement(Announcement.unknown(), Map.of());
    }

    private static ReceivedAnnouncement read(Map<?, ?> values, boolean usual) {
        boolean eager = values.get("rebalance") instanceof String word ? word.equals("Eager") : usual;
        long expires = values.get("expiresInMillis") instanceof Number millis ? millis.longValue() : -1;
        Map<String, Object> epoch = epoch(values);
        if ("empty".equals(values.get("state"))) {
            return new ReceivedAnnouncement(new Announcement(Announcement.State.EMPTY, Set.of(), eager, -1), epoch);
        }
        if ("unknown".equals(values.get("state"))) {
            return new ReceivedAnnouncement(Announcement.unknown(), epoch);
        }
        if ("set".equals(values.get("state")) && values.get("processIds") instanceof Collection<?> ids) {
            Set<String> leaving = new HashSet<>();
            ids.forEach(id -> leaving.add(String.valueOf(id)));
            return new ReceivedAnnouncement(new Announcement(Announcement.State.SET, leaving, eager, expires), epoch);
        }
        return notUnderstood(values.toString());
    }

    private static Map<String, Object> epoch(Map<?, ?> values) {
        boolean named = values.get("lease") instanceof Number && values.get("counter") instanceof Number;
        return named ? Map.of("lease", ((Number) values.get("lease")).longValue(), "counter", ((Number) values.get("counter")).longValue()) : Map.of();
    }

    /** Report the assignment to the agent, if one exists. */
    static void reportResult(String applicationId, ReceivedAnnouncement received, AssignmentResult result) {
        if (lookUp(ROUND) instanceof Consumer<?> agent) {
            try {
                // The type of the protocol. Another type fails in the agent's code, and the catch contains it.
                @SuppressWarnings("unchecked")
                Consumer<Map<String, Object>> listener = (Consumer<Map<String, Object>>) agent;
                listener.accept(round(applicationId, received, result));
            } catch (RuntimeException | LinkageError broken) {
                LOG.warn("the agent did not take the word about this assignment: {}", broken.toString());
            }
        }
    }

    private static Map<String, Object> round(String applicationId, ReceivedAnnouncement received, AssignmentResult result) {
        Map<String, Object> round = new HashMap<>();
        round.put("applicationId", applicationId);
        round.put("announcement", received.announcement().state().word());
        if (!received.epoch().isEmpty()) {
            round.put("epoch", received.epoch());
        }
        round.put("moved", result.moved());
        round.put("learning", result.learning(false));
        round.put("ready", result.learning(true));
        result.followUp().ifPresent(wish -> {
            round.put("followUpMillis", wish.millis());
            round.put("followUpFor", wish.purpose().word());
        });
        result.warmInMillis().ifPresent(millis -> round.put("warmInMillis", millis));
        round.put("fellBack", result.fellBack());
        return round;
    }
}
