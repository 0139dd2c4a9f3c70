package dev.streamapp.agent.report;

import dev.streamapp.agent.instance.Instance;
import dev.streamapp.agent.kafka.KafkaApi;
import dev.streamapp.agent.runtime.DaemonThreads;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/**
 * Whether every instance is at work: what the pods' readiness probe asks. A state is one volatile read of Kafka's. Tasks are looked at only where an
 * instance rebalances and no look of the last second is there, on one thread that all probes share; nothing here asks the broker. Every answer comes
 * within half a second, and a moment in which a task is handed over does not make it "not ready".
 */
public final class Health {

    private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(1);
    /** A look that takes longer than a probe may wait does not make a pod unready that was seen without restoring tasks so long ago. */
    private static final long STALE_NANOS = TimeUnit.SECONDS.toNanos(10);
    private static final long TIMEOUT_MILLIS = 500;
    private final Supplier<List<Instance>> instances;
    private final LongSupplier nanoTime;
    private final ThreadPoolExecutor thread;
    private CompletableFuture<Void> running;

    /**
     * Starts nothing yet.
     *
     * @param instances those that matter; empty where it is not known whether they are all
     * @param nanoTime a monotonic clock
     */
    public Health(Supplier<List<Instance>> instances, LongSupplier nanoTime) {
        this.instances = instances;
        this.nanoTime = nanoTime;
        this.thread = new ThreadPoolExecutor(1, 1, 1, TimeUnit.MINUTES, new LinkedBlockingQueue<>(1), task -> DaemonThreads.make("health", task));
        this.thread.allowCoreThreadTimeOut(true);
    }

    public boolean isReady() throws InterruptedException {
        List<Instance> current = instances.get();
        List<Instance> rebalancing = new ArrayList<>();
        for (Instance instance : current) {
            String state = stateOf(instance);
            if (state.equals("REBALANCING") && instance.wasRunning()) {
                rebalancing.add(instance);
            } else if (!state.equals("RUNNING")) {
                return false;
            }
        }
        if (!rebalancing.stream().allMatch(instance -> wasSeen(instance, FRESH_NANOS) && !instance.restoring().perhaps())) {
            probe(rebalancing);
        }
        return !current.isEmpty() && rebalancing.stream().allMatch(instance -> wasSeen(instance, STALE_NANOS) && !instance.restoring().any());
    }

    /** The state by its name; empty where it is not known. */
    private static String stateOf(Instance instance) {
        Object streams = instance.streams();
        try {
            return streams == null ? "" : instance.state(new KafkaApi(KafkaApi.loaderOf(streams, KafkaApi.STREAMS)));
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            return "";
        }
    }

    private boolean wasSeen(Instance instance, long within) {
        Instance.Restoring seen = instance.restoring();
        return seen != null && nanoTime.getAsLong() - seen.at() < within;
    }

    /** Waits for the look that goes on, or begins one; comes back in time whether it has ended or not. */
    private void probe(List<Instance> rebalancing) throws InterruptedException {
        CompletableFuture<Void> awaited;
        synchronized (this) {
            if (running == null) {
                CompletableFuture<Void> started = new CompletableFuture<>();
                try {
                    thread.execute(() -> run(rebalancing, started));
                } catch (RejectedExecutionException | OutOfMemoryError e) {
                    // No thread is to be had just now: the last look must do.
                    return;
                }
                running = started;
            }
            awaited = running;
        }
        try {
            awaited.get(TIMEOUT_MILLIS, TimeUnit.MILLISECONDS);
        } catch (TimeoutException | ExecutionException e) {
            // What was seen last stands for as long as it is not stale.
        }
    }

    private void run(List<Instance> rebalancing, CompletableFuture<Void> started) {
        try {
            rebalancing.forEach(Health::probeTasks);
            List<Instance> doubtful = rebalancing.stream().filter(instance -> instance.restoring() != null && instance.restoring().perhaps()).toList();
            if (!doubtful.isEmpty()) {
                TimeUnit.NANOSECONDS.sleep(Instance.APART_NANOS);
                doubtful.forEach(Health::probeTasks);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            synchronized (this) {
                running = null;
            }
            started.complete(null);
        }
    }

    private static void probeTasks(Instance instance) {
        Object streams = instance.streams();
        if (streams != null) {
            Probe.tasks(instance, new KafkaApi(KafkaApi.loaderOf(streams, KafkaApi.STREAMS)), streams, new ArrayList<>());
        }
    }
}
