package dev.streamapp.agent.instance;

import dev.streamapp.agent.config.Defaults;
import dev.streamapp.agent.config.InstanceConfig;
import dev.streamapp.agent.kafka.KafkaApi;
import dev.streamapp.agent.runtime.WarningLog;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;

/**
 * The instances of this JVM.
 *
 * <p>It drops an instance after garbage collection, and an ended instance once another one of the same application exists.
 */
public final class Instances {

    private static final int MAX_INSTANCES = 32;
    private static final Set<String> ENDED = Set.of("NOT_RUNNING", "ERROR");
    private final List<Instance> instances = new ArrayList<>();
    private int unreported;

    /**
     * Adds an instance once. The constructors of KafkaStreams call each other, so each of them reports it.
     *
     * @param defaults what the instance's configuration was completed by
     */
    public void constructed(Object streams, Object[] arguments, Defaults defaults) {
        synchronized (this) {
            if (find(streams) != null) {
                return;
            }
        }
        Object config = Arrays.stream(arguments).filter(Instances::isConfig).findFirst().orElse(null);
        if (config == null) {
            return;   // An outer constructor. The innermost one ended before and had the configuration.
        }
        try {
            add(new Instance(streams, InstanceConfig.read(defaults, config)));
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            WarningLog.warn("an instance is not reported, its configuration could not be read: " + KafkaApi.reason(e));
            synchronized (this) {
                unreported++;
            }
        }
    }

    private synchronized void add(Instance instance) {
        if (instances.size() >= MAX_INSTANCES) {
            instances.removeIf(Instances::hasEnded);
        }
        if (instances.size() >= MAX_INSTANCES) {
            unreported++;
            WarningLog.warn("more than " + MAX_INSTANCES + " instances live in this JVM; the rest is not reported");
            return;
        }
        instances.add(instance);
    }

    private static boolean isConfig(Object argument) {
        for (Class<?> type = argument == null ? null : argument.getClass(); type != null; type = type.getSuperclass()) {
            if (type.getName().equals("org.apache.kafka.streams.StreamsConfig")) {
                return true;
            }
        }
        return false;
    }

    private static boolean hasEnded(Instance instance) {
        Object streams = instance.streams();
        try {
            return streams == null || ENDED.contains(instance.state(new KafkaApi(KafkaApi.loaderOf(streams, KafkaApi.STREAMS))));
        } catch (ReflectiveOperationException e) {
            return false;
        }
    }

    /** Returns the instance of this object, or null. */
    public synchronized Instance find(Object streams) {
        return instances.stream().filter(instance -> instance.streams() == streams).findFirst().orElse(null);
    }

    /** Returns whether the report shows every instance. It is false once an instance could not be added. */
    public synchronized boolean isComplete() {
        return unreported == 0;
    }

    /** Returns {@link #current}, or an empty list if the list is incomplete. */
    public synchronized List<Instance> all() {
        return isComplete() ? current() : List.of();
    }

    /** Returns the instances without replaced ones, in the order of their construction. */
    public synchronized List<Instance> current() {
        instances.removeIf(instance -> instance.streams() == null);
        List<Instance> ended = instances.stream().filter(Instances::hasEnded).toList();
        for (Instance old : ended) {
            boolean replaced = instances.stream().anyMatch(
                    other -> other != old && !ended.contains(other) && sameApplication(old, other)
                             || ended.contains(other) && instances.indexOf(other) > instances.indexOf(old) && sameApplication(old, other));
            if (replaced) {
                instances.remove(old);
            }
        }
        return List.copyOf(instances);
    }

    private static boolean sameApplication(Instance one, Instance other) {
        return one.configuration().applicationId().equals(other.configuration().applicationId());
    }
}
