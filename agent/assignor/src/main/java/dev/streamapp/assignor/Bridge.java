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
 * Where the assignor meets the agent of the same JVM: a map that the agent lays out in the boot loader, with values in types of the JDK only. Without
 * an agent the application may say the same in {@link #OWN}.
 */
final class Bridge {

    static final String ANNOUNCEMENT = "announcement";
    static final String ROUND = "round";
    static final String MEETING = "dev.streamapp.agent.meeting.Meeting";
    static final String FIELD = "PLACE";

    /** What the application itself says, under the same keys. */
    static final Map<String, Object> OWN = new ConcurrentHashMap<>();

    private static final Logger LOG = LoggerFactory.getLogger(Bridge.class);

    private Bridge() {}

    /**
     * What the agent says, with the epoch it says it in.
     *
     * @param epoch {@code lease} and {@code counter}; empty where the agent named none
     */
    record ReceivedAnnouncement(Announcement announcement, Map<String, Object> epoch) {}

    /** What lies under this key: the agent's if there is one, else the application's, else null. */
    private static Object said(String key) {
        try {
            return ((Map<?, ?>) Class.forName(MEETING, true, null).getField(FIELD).get(null)).get(key);
        } catch (ClassNotFoundException noAgent) {
            return OWN.get(key);
        } catch (ReflectiveOperationException | RuntimeException | LinkageError broken) {
            return broken;   // Not understood: nothing moves.
        }
    }

    /**
     * Ask the agent who leaves.
     *
     * @return nobody where there is no agent; unknown where its answer cannot be understood, which keeps everything where it is
     */
    static ReceivedAnnouncement readAnnouncement(boolean eager) {
        Object source = said(ANNOUNCEMENT);
        if (source == null) {
            return new ReceivedAnnouncement(new Announcement(Announcement.State.EMPTY, Set.of(), eager, -1), Map.of());
        }
        try {
            return ((Supplier<?>) source).get() instanceof Map<?, ?> said ? read(said, eager) : notUnderstood("it is no map");
        } catch (RuntimeException | LinkageError broken) {
            return notUnderstood(broken.toString());
        }
    }

    private static ReceivedAnnouncement notUnderstood(String why) {
        LOG.warn("the agent's announcement cannot be understood, so nothing moves: {}", why);
        return new ReceivedAnnouncement(Announcement.unknown(), Map.of());
    }

    private static ReceivedAnnouncement read(Map<?, ?> said, boolean usual) {
        boolean eager = said.get("rebalance") instanceof String word ? word.equals("Eager") : usual;
        long expires = said.get("expiresInMillis") instanceof Number millis ? millis.longValue() : -1;
        Map<String, Object> epoch = epoch(said);
        if ("empty".equals(said.get("state"))) {
            return new ReceivedAnnouncement(new Announcement(Announcement.State.EMPTY, Set.of(), eager, -1), epoch);
        }
        if ("unknown".equals(said.get("state"))) {
            return new ReceivedAnnouncement(Announcement.unknown(), epoch);
        }
        if ("set".equals(said.get("state")) && said.get("processIds") instanceof Collection<?> ids) {
            Set<String> leaving = new HashSet<>();
            ids.forEach(id -> leaving.add(String.valueOf(id)));
            return new ReceivedAnnouncement(new Announcement(Announcement.State.SET, leaving, eager, expires), epoch);
        }
        return notUnderstood(said.toString());
    }

    private static Map<String, Object> epoch(Map<?, ?> said) {
        boolean named = said.get("lease") instanceof Number && said.get("counter") instanceof Number;
        return named ? Map.of("lease", ((Number) said.get("lease")).longValue(), "counter", ((Number) said.get("counter")).longValue()) : Map.of();
    }

    /** Tell the agent, if there is one, what was assigned. */
    static void reportResult(String applicationId, ReceivedAnnouncement received, AssignmentResult result) {
        if (said(ROUND) instanceof Consumer<?> agent) {
            try {
                // The agreed type; another one fails in the agent's own code, and is contained here.
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
        round.put("fellBack", result.fellBack());
        return round;
    }
}
