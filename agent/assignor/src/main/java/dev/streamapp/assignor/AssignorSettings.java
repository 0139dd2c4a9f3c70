package dev.streamapp.assignor;

import dev.streamapp.assignor.core.model.Process;
import dev.streamapp.assignor.core.model.Settings;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads the user's settings. An unreadable value gets its default and a warning in the log. */
final class AssignorSettings {

    static final String FOLLOW_UP = "streamapp.assignor.followup.ms";
    static final String TOLERANCE = "streamapp.assignor.tolerance";
    static final String BALANCE_LEARNERS = "streamapp.assignor.balance.learners";
    static final String LEAVING_LEARNERS = "streamapp.assignor.leaving.learners";
    static final String REBALANCE = "streamapp.assignor.rebalance";
    static final String WARM = "streamapp.assignor.warm.ms";
    static final String WEIGHTS = "streamapp.assignor.weights.class";

    private static final long WARM_MILLIS = 10_000;

    private static final Logger LOG = LoggerFactory.getLogger(AssignorSettings.class);

    private final Map<String, ?> given;

    AssignorSettings(Map<String, ?> given) {
        this.given = given == null ? Map.of() : given;
    }

    /** Return the application's id, or an empty string. */
    String applicationId() {
        Object id = given.get("application.id");
        return id == null ? "" : id.toString();
    }

    /** Return whether each task moves as soon as its own learner is ready. An announcement overrides it. */
    boolean isEager() {
        Object word = given.get(REBALANCE);
        return word != null && word.toString().toLowerCase(Locale.ROOT).equals("eager");
    }

    /** Return for how long a process that has just joined gets no task that runs elsewhere, in milliseconds: a minute at most. */
    long warmMillis() {
        return Math.min(number(WARM, WARM_MILLIS, 0), Process.LONGEST_COLD_MILLIS);
    }

    Settings with(AssignmentConfigs kafkas) {
        Settings usual = Settings.DEFAULT;
        return new Settings(
            kafkas.acceptableRecoveryLag(),
            kafkas.numStandbyReplicas(),
            (int) number(BALANCE_LEARNERS, kafkas.maxWarmupReplicas()),
            (int) number(LEAVING_LEARNERS, usual.leavingLearners()),
            (int) number(TOLERANCE, usual.tolerance()),
            kafkas.rackAwareAssignmentTags().isEmpty() && StreamsConfig.RACK_AWARE_ASSIGNMENT_STRATEGY_NONE.equals(kafkas.rackAwareAssignmentStrategy()),
            number(FOLLOW_UP, usual.followUpMillis()));
    }

    private long number(String name, long usual) {
        return number(name, usual, 1);
    }

    private long number(String name, long usual, long least) {
        Object value = given.get(name);
        if (value == null) {
            return usual;
        }
        try {
            return Math.max(least, Math.min(Integer.MAX_VALUE, Long.parseLong(value.toString().trim())));
        } catch (NumberFormatException wrong) {
            LOG.warn("{} is no whole number: {}; {} is used", name, value, usual);
            return usual;
        }
    }

    /** Return the weights that the user named, or the same weight for all. */
    TaskWeights weights() {
        Object name = given.get(WEIGHTS);
        if (name == null) {
            return task -> 1;
        }
        try {
            Class<?> type = name instanceof Class<?> known ? known : load(name.toString().trim());
            return type.asSubclass(TaskWeights.class).getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException | ClassCastException | LinkageError wrong) {
            LOG.warn("{} cannot be used, every task weighs the same: {}", WEIGHTS, wrong.toString());
            return task -> 1;
        }
    }

    private static Class<?> load(String name) throws ClassNotFoundException {
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        ClassLoader own = AssignorSettings.class.getClassLoader();
        try {
            return Class.forName(name, true, context == null ? own : context);
        } catch (ClassNotFoundException elsewhere) {
            return Class.forName(name, true, own);
        }
    }
}
