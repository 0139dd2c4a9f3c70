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
 * Runs the exchanges of the HTTP server, with few threads, a short queue and deadlines.
 *
 * <p>One deadline holds for the request, one for the whole exchange. The JDK's server reads requests on these threads.
 * Its own deadlines would also apply to a server of the application. An interrupt closes the channel that the thread waits for.
 * So a slow client loses its connection, and other clients wait at most for the deadlines before them.
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
            // A late interrupt must not reach the next exchange of this thread.
            Thread.interrupted();
        }
    }

    /** Throws {@link RejectedExecutionException} if the queue is full. The server then drops the connection. */
    @Override
    public void execute(Runnable exchange) {
        threads.execute(() -> runWithin(exchange));
    }

    /** Ends the deadline of the request. The thread of the exchange calls it after it has read the request. */
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
