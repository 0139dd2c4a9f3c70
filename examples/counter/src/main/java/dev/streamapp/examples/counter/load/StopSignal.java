package dev.streamapp.examples.counter.load;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Makes SIGTERM and SIGINT an ordinary end of the work. The worker finishes, and the exit code is 0, not 143. */
final class StopSignal implements AutoCloseable {
    /** How long the worker may take to finish; Kubernetes' default grace period is 30 s. */
    private static final Duration PATIENCE = Duration.ofSeconds(25);

    private final CountDownLatch requested = new CountDownLatch(1);
    private final CompletableFuture<Boolean> endedWell = new CompletableFuture<>();

    private StopSignal() {}

    /** Listen from now on, until {@link #close}. */
    static StopSignal listen() {
        StopSignal signal = new StopSignal();
        Runtime.getRuntime().addShutdownHook(new Thread(signal::stop, "stop"));
        return signal;
    }

    /** Wait, and say whether the stop came meanwhile; with nothing to wait for, answer at once. */
    boolean cameWithin(long nanos) throws InterruptedException {
        return requested.await(nanos, TimeUnit.NANOSECONDS);
    }

    /** The work is done and nothing was lost. */
    void finished() {
        endedWell.complete(true);
    }

    /** The work is over; if it never {@link #finished}, the exit code stays that of the failure or the signal. */
    @Override
    public void close() {
        endedWell.complete(false);
    }

    private void stop() {
        requested.countDown();
        // Runs at the ordinary end of the process too; the answer is there then, and true goes with exit code 0.
        try {
            if (endedWell.get(PATIENCE.toSeconds(), TimeUnit.SECONDS)) {
                Runtime.getRuntime().halt(0);
            }
        } catch (TimeoutException e) {
            System.err.println("load: not finished after " + PATIENCE.toSeconds() + " s; records may be lost");
        } catch (InterruptedException | ExecutionException e) {
            throw new IllegalStateException("nobody interrupts this thread or fails this future", e);
        }
    }
}
