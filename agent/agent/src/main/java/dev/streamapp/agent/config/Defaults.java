package dev.streamapp.agent.config;

import dev.streamapp.agent.assignor.AssignorInstaller;
import dev.streamapp.agent.kafka.Limitation;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

/**
 * Decides which unset settings get another default.
 *
 * <p>It decides again for each StreamsConfig, so the report matches the settings in use.
 * Explicit settings win: a value in the main consumer's settings stays.
 */
public final class Defaults {

    static final String ASSIGNOR = "task.assignor.class";
    static final String INTERNAL_ASSIGNOR = "internal.task.assignor.class";
    public static final String STOCK_ASSIGNOR = "org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor";
    static final String HEARTBEAT = "heartbeat.interval.ms";
    static final int HEARTBEAT_MILLIS = 500;
    static final String FETCH_WAIT = "fetch.max.wait.ms";
    /** On average half of it is added to a move. A broker gets up to ten empty fetches a second from a process with idle standbys, instead of two. */
    static final int FETCH_WAIT_MILLIS = 100;
    private static final String SESSION = "session.timeout.ms";
    private static final int HEARTBEATS_IN_A_SESSION = 3;
    private final Set<String> enabled;
    private final AssignorInstaller assignor;
    private final Supplier<String> serverOff;

    /** The new values, by setting, and the limitations. */
    record Decision(Map<String, Object> given, List<Limitation> limitations) { }

    /**
     * Takes what may be set.
     *
     * @param enabled names out of {@code assignor}, {@code heartbeat}, {@code leave}
     * @param serverOff why the agent's server is off, empty if it listens. Nobody can announce anything to such an agent, and the group would be
     *     mixed for nothing, so the settings stay. It may block for seconds and always returns the same.
     */
    public Defaults(Set<String> enabled, AssignorInstaller assignor, Supplier<String> serverOff) {
        this.enabled = enabled;
        this.assignor = assignor;
        this.serverOff = serverOff;
    }

    public boolean enabled(String name) {
        return enabled.contains(name);
    }

    /**
     * Decides the defaults for one configuration.
     *
     * @param config every setting of the StreamsConfig with its value or default
     * @param consumer the main consumer's settings from Kafka Streams, without the values of this class
     * @param session the consumer's default of {@code session.timeout.ms}, in milliseconds
     */
    Decision decide(Map<?, ?> config, Map<?, ?> consumer, long session, ClassLoader loader) {
        Map<String, Object> given = new LinkedHashMap<>();
        List<Limitation> limitations = new ArrayList<>();
        decideAssignor(config, consumer, loader, given, limitations);
        decideHeartbeat(config, consumer, session, given, limitations);
        return new Decision(given, limitations);
    }

    /**
     * Decides the defaults of the restore consumer, for applications with exactly-once. {@code heartbeat} stands for both timings of consumers.
     *
     * <p>A task that moves there has to fetch past the last commit marker before it is restored. A consumer has one fetch in flight to each broker,
     * and one for standbys without news lies there for {@code fetch.max.wait.ms}. Without transactions there is no marker to wait for.
     *
     * @param config every setting of the StreamsConfig with its value or default
     * @param consumer the restore consumer's settings from Kafka Streams
     * @return the new values, by setting
     */
    Map<String, Object> decideRestore(Map<?, ?> config, Map<?, ?> consumer) {
        boolean exactlyOnce = String.valueOf(config.get("processing.guarantee")).startsWith("exactly_once");
        boolean wanted = enabled("heartbeat") && exactlyOnce && consumer.get(FETCH_WAIT) == null;
        return wanted && serverOff.get().isEmpty() ? Map.of(FETCH_WAIT, FETCH_WAIT_MILLIS) : Map.of();
    }

    /** Returns whether threads that have copies alone are prepared for their tasks. Those copies come by the assignor. */
    boolean wantsWarmUp() {
        return enabled("assignor") && serverOff.get().isEmpty();
    }

    /**
     * Returns whether a task follows each copy. Only then can transactions be initialized before the task is there.
     *
     * <p>A standby is a copy for as long as the application runs. Brokers forget the ID of a producer that has no transaction for some days
     * ({@code transactional.id.expiration.ms}), and the first transaction then fails, which costs the thread the state of its tasks.
     *
     * @param config every setting of the StreamsConfig with its value or default
     */
    static boolean copiesComeOnDemand(Map<?, ?> config) {
        return number(config.get("num.standby.replicas"), 0) == 0;
    }

    static String protocol(Map<?, ?> config) {
        return String.valueOf(config.get("group.protocol")).toLowerCase(Locale.ROOT).equals("streams") ? "streams" : "classic";
    }

    private void decideAssignor(Map<?, ?> config, Map<?, ?> consumer, ClassLoader loader, Map<String, Object> given, List<Limitation> limitations) {
        Object own = consumer.get(ASSIGNOR) != null ? consumer.get(ASSIGNOR) : consumer.get(INTERNAL_ASSIGNOR);
        if (AssignorInstaller.NAME.equals(className(own))) {
            return;
        }
        if (!enabled("assignor")) {
            limitations.add(new Limitation("assignor", "STREAMAPP_AGENT_DEFAULTS does not name it", Limitation.Kind.SwitchedOff));
        } else if (protocol(config).equals("streams")) {
            limitations.add(new Limitation("assignor", "with group.protocol=streams the broker assigns", Limitation.Kind.StreamsProtocol));
        } else if (!config.containsKey(ASSIGNOR)) {
            limitations.add(new Limitation("assignor", "this release does not know " + ASSIGNOR + " (it came with 3.8)", Limitation.Kind.OlderStreams));
        } else if (own != null) {
            limitations.add(new Limitation("assignor", "the application sets its own: " + className(own), Limitation.Kind.OwnAssignor));
        } else if (!serverOff.get().isEmpty()) {
            limitations.add(new Limitation("assignor", serverOff.get(), Limitation.Kind.Failed));
        } else {
            AssignorInstaller.Result result = assignor.install(loader);
            if (result.isInstalled()) {
                given.put(ASSIGNOR, AssignorInstaller.NAME);
            } else {
                limitations.add(result.limitation());
            }
        }
    }

    private void decideHeartbeat(Map<?, ?> config, Map<?, ?> consumer, long sessionDefault, Map<String, Object> given, List<Limitation> limitations) {
        if (!enabled("heartbeat")) {
            limitations.add(new Limitation("heartbeat", "STREAMAPP_AGENT_DEFAULTS does not name it", Limitation.Kind.SwitchedOff));
        } else if (protocol(config).equals("streams")) {
            limitations.add(new Limitation("heartbeat", "with group.protocol=streams the broker sets it", Limitation.Kind.StreamsProtocol));
        } else if (consumer.get(HEARTBEAT) == null && !serverOff.get().isEmpty()) {
            limitations.add(new Limitation("heartbeat", serverOff.get(), Limitation.Kind.Failed));
        } else if (consumer.get(HEARTBEAT) == null) {
            long session = number(consumer.get(SESSION), sessionDefault);
            if (session >= (long) HEARTBEATS_IN_A_SESSION * HEARTBEAT_MILLIS) {
                given.put(HEARTBEAT, HEARTBEAT_MILLIS);
            } else {
                limitations.add(new Limitation("heartbeat", SESSION + " of " + session + " ms is too short for it", Limitation.Kind.Failed));
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
