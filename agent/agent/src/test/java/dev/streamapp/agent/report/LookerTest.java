package dev.streamapp.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

class LookerTest {

    private static final int MORE_THAN_WAIT = 5;

    @Test
    void aLookThatCouldNotBeginDoesNotKeepLaterOnesFromIt() throws InterruptedException {
        Looker looker = new Looker(List::of);
        CountDownLatch open = new CountDownLatch(1);
        CountDownLatch done = new CountDownLatch(MORE_THAN_WAIT);
        for (int work = 0; work < MORE_THAN_WAIT; work++) {
            looker.later(() -> {
                try {
                    open.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
                done.countDown();
            });
        }
        assertTrue(looker.look().isEmpty());
        open.countDown();
        done.await();
        assertEquals(1, looker.look().orElseThrow().sequence());
    }
}
