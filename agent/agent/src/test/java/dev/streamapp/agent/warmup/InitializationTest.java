package dev.streamapp.agent.warmup;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.InvocationTargetException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** A producer is initialized once: by the agent or by Kafka Streams, never by both. */
class InitializationTest {

    private final Initialization initialization = new Initialization();
    private final AtomicInteger calls = new AtomicInteger();

    private void run() throws ReflectiveOperationException {
        initialization.run(calls::incrementAndGet);
    }

    @Test
    void whereItIsNotAllowedKafkaDoesIt() throws ReflectiveOperationException {
        run();
        assertFalse(initialization.isDone());
        assertEquals(0, calls.get());
    }

    @Test
    void whatTheAgentHasDoneIsDoneOnce() throws ReflectiveOperationException {
        initialization.allow();
        run();
        run();
        assertTrue(initialization.isDone());
        assertEquals(1, calls.get());
    }

    @Test
    void ifKafkaComesFirstTheAgentLeavesItAlone() throws ReflectiveOperationException {
        initialization.allow();
        assertFalse(initialization.isDone());
        run();
        assertFalse(initialization.isDone());
        assertEquals(0, calls.get());
    }

    @Test
    void afterAFailureKafkaTriesItself() {
        initialization.allow();
        assertThrows(IllegalStateException.class, () -> initialization.run(() -> {
            throw new IllegalStateException("no broker");
        }));
        assertFalse(initialization.isDone());
    }

    @Test
    void kafkaWaitsForTheCallThatRunsAndItsThreadDoesNotWaitForItself() throws InterruptedException, ExecutionException, TimeoutException {
        initialization.allow();
        CompletableFuture<Void> broker = new CompletableFuture<>();
        CompletableFuture<Boolean> called = new CompletableFuture<>();
        CompletableFuture<Void> agent = CompletableFuture.runAsync(() -> {
            try {
                initialization.run(() -> {
                    called.complete(initialization.isCalling());
                    broker.join();
                });
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        });
        assertTrue(called.get(10, TimeUnit.SECONDS));
        assertFalse(initialization.isCalling());
        CompletableFuture<Boolean> kafka = CompletableFuture.supplyAsync(initialization::isDone);
        assertThrows(TimeoutException.class, () -> kafka.get(100, TimeUnit.MILLISECONDS));
        broker.complete(null);
        assertTrue(kafka.get(10, TimeUnit.SECONDS));
        agent.get(10, TimeUnit.SECONDS);
    }

    @Test
    void whatWasRefusedOnceKeepsItsReason() {
        RuntimeException refused = new RuntimeException("not authorized");
        RuntimeException later = new RuntimeException("in an error state", refused);
        RuntimeException other = new RuntimeException("something else");
        assertNull(initialization.reasonOf(later), "no call was made");
        initialization.allow();
        assertThrows(InvocationTargetException.class, () -> initialization.run(() -> {
            throw new InvocationTargetException(refused);
        }));
        assertTrue(initialization.hasFailed());
        assertSame(refused, initialization.reasonOf(later));
        assertNull(initialization.reasonOf(other), "that is Kafka's own news");
    }
}
