package dev.streamapp.examples.counter.load.records;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class WaitsTest {
    private final Waits waits = new Waits();

    @Test
    void theWaitIsFromTheAppendOfTheOldestInputToTheNextOutput() {
        waits.input(0, 1_000);
        waits.input(1, 1_200);
        waits.output(0, 1_010);
        waits.output(1, 4_010);
        assertEquals(3_000 - 190, waits.takeLongestMs());
        assertEquals(0, waits.takeLongestMs());
    }

    @Test
    void aPauseOfTheInputIsNoWait() {
        waits.input(0, 1_000);
        waits.output(0, 1_005);
        waits.input(1, 90_000);
        waits.output(1, 90_007);
        assertEquals(7, waits.takeLongestMs());
        assertEquals(0, waits.openMs(200_000));
    }

    @Test
    void anInputThatStillWaitsIsOpen() {
        waits.input(0, 1_000);
        assertEquals(500, waits.openMs(1_500));
        assertEquals(0, waits.takeLongestMs());
    }

    @Test
    void anOutputThatIsSeenBeforeItsInputCounts() {
        waits.output(0, 1_030);
        waits.input(0, 1_000);
        assertEquals(30, waits.takeLongestMs());
        assertEquals(1, waits.answered());
    }

    @Test
    void anInputThatWasPassedOverIsCountedOnceAndARepeatedOutputIsNot() {
        waits.input(0, 1_000);
        waits.input(1, 1_001);
        waits.output(1, 1_010);
        waits.output(1, 1_020);
        assertEquals(1, waits.passed());
        assertEquals(2, waits.answered());
    }
}
