package dev.streamapp.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

class ProberTest {

    private static final int MORE_THAN_WAIT = 5;

    @Test
    void aLookThatCouldNotBeginDoesNotKeepLaterOnesFromIt() throws InterruptedException {
        Prober prober = new Prober(List::of);
        CountDownLatch open = new CountDownLatch(1);
        CountDownLatch done = new CountDownLatch(MORE_THAN_WAIT);
        for (int work = 0; work < MORE_THAN_WAIT; work++) {
            prober.runLater(() -> {
                try {
                    open.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
                done.countDown();
            });
        }
        assertTrue(prober.probe().isEmpty());
        open.countDown();
        done.await();
        assertEquals(1, prober.probe().orElseThrow().sequence());
    }

    @Test
    void aSlowLookIsAwaitedForASecondAndThenTheLastOneCounts() throws InterruptedException {
        CountDownLatch open = new CountDownLatch(1);
        AtomicBoolean slow = new AtomicBoolean();
        Prober prober = new Prober(() -> {
            try {
                if (slow.get()) {
                    open.await();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return List.of();
        });
        assertEquals(1, prober.probe().orElseThrow().sequence());
        slow.set(true);
        TimeUnit.MILLISECONDS.sleep(1_050);
        assertEquals(1, prober.probe().orElseThrow().sequence());
        open.countDown();
    }
}
