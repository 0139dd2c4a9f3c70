package dev.streamapp.agent.config;

import dev.streamapp.agent.assignor.AssignorClasses;
import dev.streamapp.agent.kafka.Aside;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * Which settings that the user left unset get another value, decided anew from one StreamsConfig each time, so that what is reported is what is done.
 * Explicit settings win: what the main consumer's settings already hold is not touched.
 */
public final class Defaults {

    static final String ASSIGNOR = "task.assignor.class";
    static final String INTERNAL_ASSIGNOR = "internal.task.assignor.class";
    public static final String STOCK_ASSIGNOR = "org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor";
    static final String HEARTBEAT = "heartbeat.interval.ms";
    static final int HEARTBEAT_MILLIS = 500;
    private static final String SESSION = "session.timeout.ms";
    private static final int HEARTBEATS_IN_A_SESSION = 3;
    private final Set<String> enabled;
    private final AssignorClasses assignor;

    /** The values to give, by setting, and what is not done. */
    record Decision(Map<String, Object> given, List<Aside> asides) { }

    public Defaults(Set<String> enabled, AssignorClasses assignor) {
        this.enabled = enabled;
        this.assignor = assignor;
    }

    public boolean enabled(String name) {
        return enabled.contains(name);
    }

    /**
     * Decides.
     *
     * @param config every setting of the StreamsConfig with its value or default
     * @param consumer the main consumer's settings as Kafka Streams made them up, without what this class gives
     * @param session what the consumer takes where {@code session.timeout.ms} is unset, in milliseconds
     */
    Decision decide(Map<?, ?> config, Map<?, ?> consumer, long session, ClassLoader loader) {
        Map<String, Object> given = new LinkedHashMap<>();
        List<Aside> asides = new ArrayList<>();
        decideAssignor(config, consumer, loader, given, asides);
        decideHeartbeat(config, consumer, session, given, asides);
        return new Decision(given, asides);
    }

    static String protocol(Map<?, ?> config) {
        return String.valueOf(config.get("group.protocol")).toLowerCase(Locale.ROOT).equals("streams") ? "streams" : "classic";
    }

    private void decideAssignor(Map<?, ?> config, Map<?, ?> consumer, ClassLoader loader, Map<String, Object> given, List<Aside> asides) {
        Object own = consumer.get(ASSIGNOR) != null ? consumer.get(ASSIGNOR) : consumer.get(INTERNAL_ASSIGNOR);
        if (AssignorClasses.NAME.equals(className(own))) {
            return;
        }
        if (!enabled("assignor")) {
            asides.add(new Aside("assignor", "STREAMAPP_AGENT_DEFAULTS does not name it", Aside.Kind.SwitchedOff));
        } else if (protocol(config).equals("streams")) {
            asides.add(new Aside("assignor", "with group.protocol=streams the broker assigns", Aside.Kind.StreamsProtocol));
        } else if (!config.containsKey(ASSIGNOR)) {
            asides.add(new Aside("assignor", "this release does not know " + ASSIGNOR + " (it came with 3.8)", Aside.Kind.OlderStreams));
        } else if (own != null) {
            asides.add(new Aside("assignor", "the application sets its own: " + className(own), Aside.Kind.OwnAssignor));
        } else {
            AssignorClasses.Outcome outcome = assignor.outcome(loader);
            if (outcome.found()) {
                given.put(ASSIGNOR, AssignorClasses.NAME);
            } else {
                asides.add(outcome.aside());
            }
        }
    }

    private void decideHeartbeat(Map<?, ?> config, Map<?, ?> consumer, long sessionDefault, Map<String, Object> given, List<Aside> asides) {
        if (!enabled("heartbeat")) {
            asides.add(new Aside("heartbeat", "STREAMAPP_AGENT_DEFAULTS does not name it", Aside.Kind.SwitchedOff));
        } else if (protocol(config).equals("streams")) {
            asides.add(new Aside("heartbeat", "with group.protocol=streams the broker sets it", Aside.Kind.StreamsProtocol));
        } else if (consumer.get(HEARTBEAT) == null) {
            long session = number(consumer.get(SESSION), sessionDefault);
            if (session >= (long) HEARTBEATS_IN_A_SESSION * HEARTBEAT_MILLIS) {
                given.put(HEARTBEAT, HEARTBEAT_MILLIS);
            } else {
                asides.add(new Aside("heartbeat", SESSION + " of " + session + " ms is too short for it", Aside.Kind.Failed));
            }
        }
    }

    static String className(Object setting) {
        return setting instanceof Class<?> type ? type.getName() : setting == null ? null : setting.toString();
    }

    public static long number(Object value, long otherwise) {
        if (value instanceof Number number) {
            return number.longValue();
        }
        try {
            return value == null ? otherwise : Long.parseLong(value.toString().trim());
        } catch (NumberFormatException e) {
            return otherwise;
        }
    }
}
