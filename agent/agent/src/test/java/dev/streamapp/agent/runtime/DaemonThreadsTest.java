package dev.streamapp.agent.runtime;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class DaemonThreadsTest {

    private final Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();

    @AfterEach
    void giveBack() {
        Thread.setDefaultUncaughtExceptionHandler(before);
    }

    @Test
    void anApplicationThatEndsAtUncaughtErrorsHearsNothingOfTheAgents() throws InterruptedException {
        AtomicReference<Throwable> heard = new AtomicReference<>();
        Thread.setDefaultUncaughtExceptionHandler((thread, problem) -> heard.set(problem));
        AtomicReference<Thread> child = new AtomicReference<>();
        Thread thread = DaemonThreads.make("test", () -> {
            child.set(new Thread(null, () -> {
                throw new OutOfMemoryError("no native thread");
            }, "HTTP-Dispatcher"));
            child.get().start();
            throw new OutOfMemoryError("no native thread");
        });
        thread.start();
        thread.join();
        child.get().join();
        assertNull(heard.get());
        assertTrue(child.get().isDaemon());
    }
}
