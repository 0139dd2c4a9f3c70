package dev.streamapp.examples.counter.settings;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.Optional;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class DurationsTest {
    @ParameterizedTest
    @CsvSource({"500ms, PT0.5S", "30s, PT30S", "10m, PT10M", "2h, PT2H", "0s, PT0S"})
    void aNumberWithAUnitIsADuration(String text, Duration expected) {
        assertEquals(Optional.of(expected), Durations.parse(text));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "30", "s", "-5s", "1.5s", "10 m", "10M", "PT10M", "99999999999h"})
    void anythingElseIsNone(String text) {
        assertEquals(Optional.empty(), Durations.parse(text));
    }
}
