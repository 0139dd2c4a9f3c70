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
 * Answers the readiness probe: whether every instance is at work.
 *
 * <p>The state of an instance is one volatile read. The check reads the tasks only while an instance rebalances and the last probe is older than
 * a second. One thread does this for all requests, and it never asks the broker. Every answer comes within half a second.
 * A task hand-over does not make the pod unready.
 */
public final class Health {

    private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(1);
    /** While a task probe is slow, the last result stays valid for this long. */
    private static final long STALE_NANOS = TimeUnit.SECONDS.toNanos(10);
    private static final long TIMEOUT_MILLIS = 500;
    private final Supplier<List<Instance>> instances;
    private final LongSupplier nanoTime;
    private final ThreadPoolExecutor thread;
    private CompletableFuture<Void> running;

    /**
     * Creates the check. It starts no thread yet.
     *
     * @param instances the current instances; empty if the list is incomplete
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

    /** Returns the name of the state, or an empty string if it is unknown. */
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

    /** Waits for the running task probe, or starts one. It returns in time, whether the probe has ended or not. */
    private void probe(List<Instance> rebalancing) throws InterruptedException {
        CompletableFuture<Void> awaited;
        synchronized (this) {
            if (running == null) {
                CompletableFuture<Void> started = new CompletableFuture<>();
                try {
                    thread.execute(() -> run(rebalancing, started));
                } catch (RejectedExecutionException | OutOfMemoryError e) {
                    // The JVM has no thread left. The last probe stays valid.
                    return;
                }
                running = started;
            }
            awaited = running;
        }
        try {
            awaited.get(TIMEOUT_MILLIS, TimeUnit.MILLISECONDS);
        } catch (TimeoutException | ExecutionException e) {
            // The last result stays valid until it is stale.
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
