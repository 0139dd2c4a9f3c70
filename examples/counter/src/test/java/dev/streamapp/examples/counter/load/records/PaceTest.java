package dev.streamapp.examples.counter.load.records;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PaceTest {
    @ParameterizedTest
    @CsvSource({"500, 0, 0", "500, 1, 2000000", "500, 1000, 2000000000", "0.5, 1, 2000000000", "3, 3, 1000000000"})
    void recordsAreDueAtEvenTimesFromTheStart(double rate, long n, long nanos) {
        assertEquals(nanos, new Pace(rate).due(n));
    }

    @ParameterizedTest
    @CsvSource({"500, PT1S, 500", "500, PT10M, 300000", "0.5, PT1S, 1", "3, PT0.5S, 2"})
    void aDurationHoldsTheRecordsThatAreDueBeforeItsEnd(double rate, Duration duration, long records) {
        assertEquals(records, new Pace(rate).within(duration));
    }
}
