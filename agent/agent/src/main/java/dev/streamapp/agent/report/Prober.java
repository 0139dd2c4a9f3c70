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
 * Looks at the instances when a report is asked for, at most once a second, on one thread of its own: a look asks the broker for end offsets, and so
 * may take as long as the application's admin client is patient. Meanwhile the last look is served, whose age is in the report.
 */
public final class Prober {

    private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long TIMEOUT_MILLIS = 2000;
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

    /** Runs something else that must not happen on the application's threads. */
    public void runLater(Runnable work) {
        thread.execute(work);
    }

    /** The freshest look that can be had within two seconds; empty where no look has ended yet. */
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
                    // The queue is full, or no thread is to be had just now: the next look must be able to begin.
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
            // Whatever it was: the next look must be able to begin.
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
