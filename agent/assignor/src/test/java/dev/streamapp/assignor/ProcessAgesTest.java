package dev.streamapp.assignor;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class ProcessAgesTest {

    private static Map<String, Long> cold(String application, long seconds, String... processes) {
        return ProcessAges.coldMillis(application, Set.of(processes), 10_000, seconds * 1_000);
    }

    @Test
    void aNewLeaderWaitsForNobody() {
        assertEquals(Map.of(), cold("first", 100, "p0", "p1", "p2"));
    }

    @Test
    void aProcessThatJoinsIsColdForItsTime() {
        cold("joins", 100, "p0");
        assertEquals(Map.of("p1", 10_000L), cold("joins", 130, "p0", "p1"));
        assertEquals(Map.of("p1", 6_000L), cold("joins", 134, "p0", "p1"));
        assertEquals(Map.of("p1", 1_000L, "p2", 10_000L), cold("joins", 139, "p0", "p1", "p2"));
        assertEquals(Map.of("p2", 9_000L), cold("joins", 140, "p0", "p1", "p2"));
        assertEquals(Map.of(), cold("joins", 200, "p0", "p1", "p2"));
    }

    @Test
    void aProcessThatReturnsIsNew() {
        cold("returns", 100, "p0", "p1");
        cold("returns", 200, "p0");
        assertEquals(Map.of("p1", 10_000L), cold("returns", 203, "p0", "p1"));
    }

    @Test
    void anotherApplicationOfTheJvmHasItsOwnAges() {
        cold("one", 100, "p0");
        assertEquals(Map.of(), cold("other", 130, "p0", "p1"));
    }

    @Test
    void withoutATimeNobodyIsCold() {
        ProcessAges.coldMillis("none", Set.of("p0"), 0, 100_000);
        assertEquals(Map.of(), ProcessAges.coldMillis("none", Set.of("p0", "p1"), 0, 130_000));
    }
}
