package dev.streamapp.agent.report;

import dev.streamapp.agent.instance.Instance;
import dev.streamapp.agent.runtime.DaemonThreads;
import dev.streamapp.agent.runtime.WarningLog;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;

/**
 * Probes the instances for a report, at most once a second, on a thread of its own.
 *
 * <p>A probe asks the broker for end offsets, so it may last until the application's admin client times out.
 * Meanwhile reports use the last probe and give its age.
 */
public final class Prober {

    private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(1);
    /** The operator's whole request takes two seconds at most, connection and transfer included. */
    private static final long TIMEOUT_MILLIS = 1000;
    private static final int QUEUE = 4;
    private final Supplier<List<Instance>> instances;
    private final ThreadPoolExecutor thread;
    private CompletableFuture<Probe> running;
    private Probe last;
    private long sequence;

    public Prober(Supplier<List<Instance>> instances) {
        this.instances = instances;
        this.thread = new ThreadPoolExecutor(1, 1, 1, TimeUnit.MINUTES, new LinkedBlockingQueue<>(QUEUE), task -> DaemonThreads.make("look", task));
        this.thread.allowCoreThreadTimeOut(true);
    }

    /** Runs other work on the probing thread, away from the application's threads. */
    public void runLater(Runnable work) {
        thread.execute(work);
    }

    /** Returns the newest probe available within a second. It is empty before the end of the first probe. */
    public Optional<Probe> probe() throws InterruptedException {
        CompletableFuture<Probe> awaited;
        synchronized (this) {
            if (last != null && running == null && System.nanoTime() - last.beganAt() < FRESH_NANOS) {
                return Optional.of(last);
            }
            if (running == null) {
                CompletableFuture<Probe> started = new CompletableFuture<>();
                try {
                    thread.execute(() -> run(started));
                } catch (RejectedExecutionException | OutOfMemoryError e) {
                    // The queue is full or the JVM has no thread left. The next probe must be able to start.
                    WarningLog.warn("a look could not begin: " + e.getClass().getSimpleName());
                    return Optional.ofNullable(last);
                }
                running = started;
            }
            awaited = running;
        }
        try {
            return Optional.of(awaited.get(TIMEOUT_MILLIS, TimeUnit.MILLISECONDS));
        } catch (TimeoutException | ExecutionException e) {
            synchronized (this) {
                return Optional.ofNullable(last);
            }
        }
    }

    private void run(CompletableFuture<Probe> started) {
        Probe probe = null;
        Throwable problem = null;
        try {
            long number;
            synchronized (this) {
                number = ++sequence;
            }
            probe = Probe.of(number, System.nanoTime(), instances.get());
        } catch (Throwable e) {
            // The next probe must be able to start, whatever failed.
            problem = e;
            WarningLog.warn("a look failed", e);
        }
        synchronized (this) {
            running = null;
            last = probe == null ? last : probe;
        }
        if (probe == null) {
            started.completeExceptionally(problem);
        } else {
            started.complete(probe);
        }
    }
}
