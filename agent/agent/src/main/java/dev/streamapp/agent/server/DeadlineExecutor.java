package dev.streamapp.agent.server;

import dev.streamapp.agent.runtime.DaemonThreads;
import dev.streamapp.agent.runtime.WarningLog;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Runs the HTTP server's exchanges: few threads, a short queue, one deadline for the request and one for all of an exchange. The JDK's server reads
 * requests on these threads and has no deadline of its own that would not also hold for a server of the application; an interrupt closes the
 * channel that the thread waits for. Whoever is slow is hung up on, and the rest waits for the deadlines of those before it at most.
 */
final class DeadlineExecutor implements Executor {

    private static final int THREADS = 8;
    private static final int QUEUE = 16;
    private static final long REQUEST_MILLIS = 2_000;
    private static final long EXCHANGE_MILLIS = 6_000;
    private final ThreadLocal<Exchange> current = new ThreadLocal<>();
    private final ThreadPoolExecutor threads;

    DeadlineExecutor() {
        this.threads = new ThreadPoolExecutor(THREADS, THREADS, 10, TimeUnit.SECONDS, new ArrayBlockingQueue<>(QUEUE),
                                              work -> DaemonThreads.make("http", work));
        this.threads.allowCoreThreadTimeOut(true);
    }

    /** One exchange on its thread. */
    private static final class Exchange {
        private final Thread worker = Thread.currentThread();
        private final CompletableFuture<Void> request = new CompletableFuture<>();
        private final CompletableFuture<Void> whole = new CompletableFuture<>();
        private boolean ended;

        void begin() {
            hangUpAfter(request, REQUEST_MILLIS);
            hangUpAfter(whole, EXCHANGE_MILLIS);
        }

        private void hangUpAfter(CompletableFuture<Void> part, long millis) {
            part.orTimeout(millis, TimeUnit.MILLISECONDS).whenComplete((nothing, late) -> {
                synchronized (this) {
                    if (late != null && !ended) {
                        worker.interrupt();
                    }
                }
            });
        }

        synchronized void end() {
            ended = true;
            // An interrupt that came too late must not hit the next exchange of this thread.
            Thread.interrupted();
        }
    }

    /** Throws {@link RejectedExecutionException} where too much waits already; the server then drops the connection. */
    @Override
    public void execute(Runnable exchange) {
        threads.execute(() -> runWithin(exchange));
    }

    /** Called by the thread of an exchange once it has read all of the request that it wants. */
    void requestWasRead() {
        Exchange exchange = current.get();
        if (exchange != null) {
            exchange.request.complete(null);
        }
    }

    private void runWithin(Runnable work) {
        Exchange exchange = new Exchange();
        current.set(exchange);
        try {
            exchange.begin();
            work.run();
        } catch (RuntimeException | Error e) {
            WarningLog.warn("a request failed", e);
        } finally {
            current.remove();
            exchange.end();
            exchange.request.complete(null);
            exchange.whole.complete(null);
        }
    }
}
