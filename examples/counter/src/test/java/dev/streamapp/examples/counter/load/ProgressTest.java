package dev.streamapp.examples.counter.load;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class ProgressTest {
    @Test
    void aLineSaysHowFarHowFastAndHowLongStill() {
        assertEquals(
                "preload: 250,000 of 1,000,000 (25 %), 100,000 records/s, 8 s left",
                new Progress("preload", 1_000_000).line(250_000, Duration.ofMillis(2_500)));
    }

    @Test
    void theSumSaysHowManyHowLongAndHowFast() {
        assertEquals(
                "steady: 5,010 records in 10.0 s, 501.0 records/s",
                Progress.sum("steady", 5_010, Duration.ofSeconds(10)));
    }
}
