package dev.streamapp.agent.announcement;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.streamapp.agent.announcement.Announcement.Epoch;
import dev.streamapp.agent.announcement.AnnouncementState.Verdict;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class AnnouncementStateTest {

    private static final String ONE = "00000000-0000-4000-8000-000000000001";
    private static final String TWO = "00000000-0000-4000-8000-000000000002";
    /** Monotonic time may be negative and may pass zero. */
    private final AtomicLong clock = new AtomicLong(-TimeUnit.SECONDS.toNanos(30));
    private final AnnouncementState announcementState = new AnnouncementState(clock::get);

    private void pass(long millis) {
        clock.addAndGet(TimeUnit.MILLISECONDS.toNanos(millis));
    }

    private static Announcement of(long lease, long counter, int ttl, String... ids) {
        return new Announcement(new Epoch(lease, counter), ttl, List.of(ids), "Eager");
    }

    @Test
    void nobodyKnowsForAMinuteAndThenNobodyLeaves() {
        assertEquals(Map.of("state", "unknown", "processIds", List.of()), announcementState.now().asMap());
        pass(59_999);
        assertEquals("unknown", announcementState.now().state());
        pass(1);
        assertEquals("empty", announcementState.now().state());
        assertEquals("{\"state\":\"empty\"}", announcementState.now().json().toString());
    }

    @Test
    void anAnnouncementHoldsForItsTimeAndIsRemembered() {
        announcementState.offer(of(3, 4, 10, ONE));
        pass(9_999);
        assertEquals(Map.of("state", "set", "processIds", List.of(ONE), "rebalance", "Eager", "lease", 3L, "counter", 4L, "expiresInMillis", 1L),
                     announcementState.now().asMap());
        pass(1);
        assertEquals("{\"state\":\"empty\",\"epoch\":{\"lease\":3,\"counter\":4}}", announcementState.now().json().toString());
        assertEquals(List.of(), announcementState.now().leaving());
    }

    @Test
    void aRenewalHoldsAnew() {
        announcementState.offer(of(3, 4, 10, ONE, TWO));
        pass(9_000);
        assertEquals(Verdict.TAKEN, announcementState.offer(of(3, 4, 10, TWO, ONE)));
        pass(9_000);
        assertEquals("set", announcementState.now().state());
    }

    @Test
    void higherEpochsReplaceAndLowerOnesAreRefused() {
        assertEquals(Verdict.TAKEN, announcementState.offer(of(3, 4, 10, ONE)));
        assertEquals(Verdict.OTHER_CONTENT, announcementState.offer(of(3, 4, 10)));
        assertEquals(Verdict.LOWER_EPOCH, announcementState.offer(of(3, 3, 10, ONE)));
        assertEquals(Verdict.LOWER_EPOCH, announcementState.offer(of(2, 9, 10, ONE)));
        assertEquals(Verdict.TAKEN, announcementState.offer(of(4, 0, 10)));
        assertEquals("empty", announcementState.now().state());
        assertEquals(new Epoch(4, 0), announcementState.highest());
    }

    @Test
    void anExpiredEpochStillOutranksLowerOnes() {
        announcementState.offer(of(3, 4, 10, ONE));
        pass(11_000);
        assertEquals(Verdict.LOWER_EPOCH, announcementState.offer(of(3, 3, 10, ONE)));
        assertEquals(Verdict.TAKEN, announcementState.offer(of(3, 4, 10, ONE)));
        assertEquals("set", announcementState.now().state());
    }

    @Test
    void theSchemasExampleIsRead() {
        Announcement read = Announcement.parse("{\"epoch\": {\"lease\": 1, \"counter\": 2.0}, \"ttlSeconds\": 60, \"processIds\": [\"" + ONE
                                               + "\"], \"rebalance\": \"Eager\"}");
        assertEquals(of(1, 2, 60, ONE), read);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "{'epoch': {'lease': 1, 'counter': 2}, 'ttlSeconds': 0, 'processIds': [], 'rebalance': 'Eager'}",
        "{'epoch': {'lease': 1, 'counter': 2}, 'ttlSeconds': 601, 'processIds': [], 'rebalance': 'Eager'}",
        "{'epoch': {'lease': 1, 'counter': 2}, 'ttlSeconds': '9', 'processIds': [], 'rebalance': 'Eager'}",
        "{'epoch': {'lease': 1.5, 'counter': 2}, 'ttlSeconds': 9, 'processIds': [], 'rebalance': 'Eager'}",
        "{'epoch': {'lease': 1e99999, 'counter': 2}, 'ttlSeconds': 9, 'processIds': [], 'rebalance': 'Eager'}",
        "{'epoch': {'lease': 99999999999999999999, 'counter': 2}, 'ttlSeconds': 9, 'processIds': [], 'rebalance': 'Eager'}",
        "{'epoch': {'lease': 1, 'counter': 9223372036854775807}, 'ttlSeconds': 9, 'processIds': [], 'rebalance': 'Eager'}",
        "{'epoch': {'lease': 1}, 'ttlSeconds': 9, 'processIds': [], 'rebalance': 'Eager'}",
        "{'epoch': {'lease': 1, 'counter': 2}, 'ttlSeconds': 9, 'processIds': null, 'rebalance': 'Eager'}",
        "{'epoch': {'lease': 1, 'counter': 2}, 'ttlSeconds': 9, 'processIds': [1], 'rebalance': 'Eager'}",
        "{'epoch': {'lease': 1, 'counter': 2}, 'ttlSeconds': 9, 'processIds': [], 'rebalance': 'eager'}",
        "{'epoch': {'lease': 1, 'counter': 2}, 'ttlSeconds': 9, 'processIds': [], 'rebalance': 'Eager', 'more': 1}",
        "{'epoch': {'lease': 1, 'counter': 2}, 'ttlSeconds': 9, 'processIds': [], 'rebalance': 'Eager'} {}",
    })
    void whatIsNotOfTheSchemaIsRefused(String body) {
        assertThrows(IllegalArgumentException.class, () -> Announcement.parse(body.replace('\'', '"')));
    }
}
