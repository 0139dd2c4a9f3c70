package dev.streamapp.agent;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** Whether every instance is at work. Reads local state only, never the broker, and the tasks at most once a second. */
final class Health {

    private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(1);
    private final Supplier<List<Instance>> instances;
    private boolean last;
    private long readAt;
    private boolean wasRead;

    Health(Supplier<List<Instance>> instances) {
        this.instances = instances;
    }

    synchronized boolean isReady() {
        if (!wasRead || System.nanoTime() - readAt >= FRESH_NANOS) {
            List<Instance> current = instances.get();
            last = !current.isEmpty() && current.stream().allMatch(Health::isReady);
            readAt = System.nanoTime();
            wasRead = true;
        }
        return last;
    }

    private static boolean isReady(Instance instance) {
        Object streams = instance.streams();
        if (streams == null) {
            return false;
        }
        try {
            KafkaApi kafka = new KafkaApi(KafkaApi.loaderOf(streams, KafkaApi.STREAMS));
            return switch (kafka.state(streams)) {
                case "RUNNING" -> true;
                case "REBALANCING" -> nothingRestores(Look.tasks(instance, kafka, streams, new ArrayList<>()));
                default -> false;
            };
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            return false;
        }
    }

    private static boolean nothingRestores(List<Tasks.Task> tasks) {
        return tasks != null && tasks.stream().noneMatch(task -> "restoring".equals(task.state()));
    }
}
