package dev.streamapp.agent.kafka;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiConsumer;

/**
 * Kafka's public methods by reflection, in one class loader.
 *
 * <p>It caches no class between probes, so an undeployed application can be unloaded.
 * Each method throws {@link ReflectiveOperationException} if the release lacks the method, or if the method fails.
 */
public final class KafkaApi {

    public static final String STREAMS = "org.apache.kafka.streams.KafkaStreams";

    /** Options of a close that leaves the group; releases from 4.2 on have them. */
    public static final String CLOSE_OPTIONS = "org.apache.kafka.streams.CloseOptions";

    private final ClassLoader loader;

    public KafkaApi(ClassLoader loader) {
        this.loader = loader;
    }

    /** Returns the loader of the class with this name among the superclasses: an application may subclass Kafka's class. */
    public static ClassLoader loaderOf(Object object, String className) {
        for (Class<?> type = object.getClass(); type != null; type = type.getSuperclass()) {
            if (type.getName().equals(className)) {
                return type.getClassLoader();
            }
        }
        return object.getClass().getClassLoader();
    }

    /** Returns class and message of the exception, or of its cause if the method itself failed. */
    public static String reason(Throwable problem) {
        Throwable cause = problem instanceof InvocationTargetException && problem.getCause() != null ? problem.getCause() : problem;
        String text = cause.getClass().getSimpleName() + (cause.getMessage() == null ? "" : ": " + cause.getMessage());
        return text.length() <= 300 ? text : text.substring(0, 300);
    }

    public Class<?> type(String name) throws ClassNotFoundException {
        return Class.forName(name, false, loader);
    }

    public boolean has(String className) {
        try {
            type(className);
            return true;
        } catch (ClassNotFoundException | LinkageError e) {
            return false;
        }
    }

    public Object call(String className, String method, Object target) throws ReflectiveOperationException {
        return type(className).getMethod(method).invoke(target);
    }

    public String state(Object streams) throws ReflectiveOperationException {
        return ((Enum<?>) call(STREAMS, "state", streams)).name();
    }

    /** Name and state of every thread. */
    public Map<String, String> threads(Object streams) throws ReflectiveOperationException {
        Map<String, String> threads = new TreeMap<>();
        String metadata = "org.apache.kafka.streams.ThreadMetadata";
        for (Object thread : (Iterable<?>) call(STREAMS, "metadataForLocalThreads", streams)) {
            threads.put((String) call(metadata, "threadName", thread), (String) call(metadata, "threadState", thread));
        }
        return threads;
    }

    /** The position of a local store partition: the next changelog offset to apply. */
    public record Position(String store, int partition, long position) { }

    /** Returns the positions of all local stores. It asks the broker for end offsets, so it may block until the admin client times out. */
    public List<Position> positions(Object streams) throws ReflectiveOperationException {
        List<Position> positions = new ArrayList<>();
        Method position = type("org.apache.kafka.streams.LagInfo").getMethod("currentOffsetPosition");
        Map<?, ?> stores = (Map<?, ?>) call(STREAMS, "allLocalStorePartitionLags", streams);
        for (Map.Entry<?, ?> store : stores.entrySet()) {
            for (Map.Entry<?, ?> partition : ((Map<?, ?>) store.getValue()).entrySet()) {
                long offset = (Long) position.invoke(partition.getValue());
                positions.add(new Position((String) store.getKey(), (Integer) partition.getKey(), offset));
            }
        }
        return positions;
    }

    /** One metric: its group, name and tags, and its value on demand. */
    public final class Metric {
        private final Object name;
        private final Object metric;
        private final Method[] methods;

        private Metric(Object name, Object metric, Method[] methods) {
            this.name = name;
            this.metric = metric;
            this.methods = methods;
        }

        public String group() throws ReflectiveOperationException {
            return (String) methods[0].invoke(name);
        }

        public String name() throws ReflectiveOperationException {
            return (String) methods[1].invoke(name);
        }

        public String tag(String key) throws ReflectiveOperationException {
            return (String) ((Map<?, ?>) methods[2].invoke(name)).get(key);
        }

        public Object value() throws ReflectiveOperationException {
            return methods[3].invoke(metric);
        }
    }

    /** Every metric of the instance and its clients: some thousands. */
    public List<Metric> metrics(Object streams) throws ReflectiveOperationException {
        Class<?> metricName = type("org.apache.kafka.common.MetricName");
        Method[] methods = {metricName.getMethod("group"), metricName.getMethod("name"), metricName.getMethod("tags"),
                            type("org.apache.kafka.common.Metric").getMethod("metricValue")};
        List<Metric> metrics = new ArrayList<>();
        BiConsumer<Object, Object> add = (name, metric) -> metrics.add(new Metric(name, metric, methods));
        ((Map<?, ?>) call(STREAMS, "metrics", streams)).forEach(add);
        return metrics;
    }
}
