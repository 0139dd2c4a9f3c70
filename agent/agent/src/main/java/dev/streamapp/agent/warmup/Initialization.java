package dev.streamapp.agent.warmup;

import java.lang.reflect.InvocationTargetException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;

/** The one initialization of a producer's transactions: by the agent's thread, or by Kafka Streams if that comes first. */
final class Initialization {

    /** Who may initialize the producer, and what came of it. */
    private enum State { LEFT_TO_KAFKA, ALLOWED, RUNS, SUCCEEDED, FAILED }

    /** What initializes the producer. */
    interface Call {
        void initialize() throws ReflectiveOperationException;
    }

    private final AtomicReference<State> state = new AtomicReference<>(State.LEFT_TO_KAFKA);
    private final CountDownLatch ended = new CountDownLatch(1);
    private volatile Thread caller;
    private volatile Throwable failure;

    /** Lets the agent initialize the producer. */
    void allow() {
        state.compareAndSet(State.LEFT_TO_KAFKA, State.ALLOWED);
    }

    /** Prevents {@link #run} if it has not begun. */
    void leaveToKafka() {
        state.compareAndSet(State.ALLOWED, State.LEFT_TO_KAFKA);
    }

    /** Returns whether {@link #run} would make the call. */
    boolean isAllowed() {
        return state.get() == State.ALLOWED;
    }

    /** Returns whether the call of {@link #run} has thrown. */
    boolean hasFailed() {
        return state.get() == State.FAILED;
    }

    /** Returns whether the current thread is in {@link #run}. */
    boolean isCalling() {
        return caller == Thread.currentThread();
    }

    /** Initializes the producer, once, and only where the agent may. It throws what the call throws; Kafka Streams then makes the call itself. */
    void run(Call call) throws ReflectiveOperationException {
        if (!state.compareAndSet(State.ALLOWED, State.RUNS)) {
            return;
        }
        caller = Thread.currentThread();
        try {
            call.initialize();
            state.set(State.SUCCEEDED);
        } catch (InvocationTargetException e) {
            failure = e.getCause();
            throw e;
        } finally {
            caller = null;
            state.compareAndSet(State.RUNS, State.FAILED);
            ended.countDown();
        }
    }

    /** Returns whether the producer is initialized. It waits for the end of {@link #run}, and prevents it if it has not begun. */
    boolean isDone() {
        leaveToKafka();
        try {
            if (state.get() == State.RUNS) {
                ended.await();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
        return state.get() == State.SUCCEEDED;
    }

    /**
     * Returns what {@link #run} got if Kafka's later call only says that the producer is in an error state, which hides the reason; else null.
     *
     * @param thrown what Kafka's own call has thrown
     */
    Throwable reasonOf(Throwable thrown) {
        Throwable first = failure;
        return first != null && (thrown.getCause() == first || thrown instanceof IllegalStateException) ? first : null;
    }
}
