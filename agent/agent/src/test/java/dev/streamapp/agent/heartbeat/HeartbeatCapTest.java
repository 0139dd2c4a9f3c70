package dev.streamapp.agent.heartbeat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class HeartbeatCapTest {

    private final AtomicLong now = new AtomicLong(-5_000_000_000L);
    private final HeartbeatCap cap = new HeartbeatCap(true, now::get);

    /** The two methods of Kafka's HeartbeatRequestState that the cap calls; an answer of the broker sets the interval too. */
    public static final class Member {
        private long interval;
        private int resets;

        Member(long interval) {
            this.interval = interval;
        }

        public long heartbeatIntervalMs() {
            return interval;
        }

        public void updateHeartbeatIntervalMs(long millis) {
            if (millis != interval) {
                interval = millis;
                resets++;
            }
        }
    }

    /** As in a release that changed its methods. */
    public static final class StrangeMember { }

    private void pass(long millis) {
        now.addAndGet(TimeUnit.MILLISECONDS.toNanos(millis));
    }

    private long after(Member member) throws ReflectiveOperationException {
        cap.beforeHeartbeat(member);
        return member.interval;
    }

    @Test
    void aCapShortensATimerThatRunsOnceAndEndsWithTheBrokersNextAnswer() throws ReflectiveOperationException {
        Member member = new Member(5_000);
        assertEquals(5_000, after(member));
        cap.offer(new CapRequest(300, 10));
        assertEquals(300, after(member));
        assertEquals(300, after(member));
        assertEquals(1, member.resets, "a timer that is reset in each round would never expire");
        member.updateHeartbeatIntervalMs(5_000);
        assertEquals(300, after(member));
        pass(10_000);
        member.updateHeartbeatIntervalMs(5_000);
        assertEquals(5_000, after(member));
    }

    @Test
    void anIntervalThatIsShorterAlreadyStays() throws ReflectiveOperationException {
        cap.offer(new CapRequest(300, 10));
        assertEquals(200, after(new Member(200)));
        assertEquals(0, after(new Member(0)));
    }

    @Test
    void aLaterRequestReplacesTheCapOrEndsIt() throws ReflectiveOperationException {
        cap.beforeHeartbeat(new Member(5_000));
        cap.offer(new CapRequest(300, 10));
        cap.offer(new CapRequest(500, 20));
        pass(15_000);
        assertEquals("{\"intervalMillis\":5000,\"capMillis\":500,\"expiresInMillis\":5000}", cap.json().toString());
        cap.offer(new CapRequest(500, 0));
        assertEquals("{\"intervalMillis\":5000}", cap.json().toString());
        assertEquals(5_000, after(new Member(5_000)));
    }

    @Test
    void theReportHasTheLongestIntervalOfMembersThatStillAsk() throws ReflectiveOperationException {
        assertEquals(OptionalLong.empty(), cap.intervalMillis());
        Member closed = new Member(5_000);
        Member first = new Member(400);
        Member second = new Member(600);
        cap.beforeHeartbeat(closed);
        pass(31_000);
        cap.beforeHeartbeat(first);
        cap.beforeHeartbeat(second);
        assertEquals(OptionalLong.of(600), cap.intervalMillis());
    }

    @Test
    void aMemberOfAnotherFormIsLeftAloneAndReported() throws ReflectiveOperationException {
        assertEquals("the heartbeats of this release could not be advised", cap.whyNot());
        assertNull(cap.json());
        cap.offer(new CapRequest(300, 10));
        cap.beforeHeartbeat(new StrangeMember());
        assertEquals("HeartbeatRequestState of this release has other methods", cap.whyNot());
        assertNull(cap.json());
    }

    @Test
    void nothingIsCappedWhereTheUserLeavesHeartbeatsAlone() throws ReflectiveOperationException {
        HeartbeatCap off = new HeartbeatCap(false, now::get);
        off.offer(new CapRequest(300, 10));
        Member member = new Member(5_000);
        off.beforeHeartbeat(member);
        assertEquals(5_000, member.interval);
        assertNull(off.json());
    }

    @Test
    void theSchemasExampleIsRead() {
        assertEquals(new CapRequest(300, 30), CapRequest.parse("{\"capMillis\": 300, \"ttlSeconds\": 30.0}"));
        assertEquals(new CapRequest(100, 0), CapRequest.parse("{\"capMillis\": 100, \"ttlSeconds\": 0}"));
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "{'capMillis': 99, 'ttlSeconds': 10}",
        "{'capMillis': 5001, 'ttlSeconds': 10}",
        "{'capMillis': 300, 'ttlSeconds': -1}",
        "{'capMillis': 300, 'ttlSeconds': 121}",
        "{'capMillis': 300.5, 'ttlSeconds': 10}",
        "{'capMillis': 1e99999, 'ttlSeconds': 10}",
        "{'capMillis': '300', 'ttlSeconds': 10}",
        "{'capMillis': null, 'ttlSeconds': 10}",
        "{'capMillis': 300}",
        "{'capMillis': 300, 'ttlSeconds': 10, 'more': 1}",
        "{'capMillis': 300, 'ttlSeconds': 10} {}",
        "[]",
        "",
    })
    void whatIsNotOfTheSchemaIsRefused(String body) {
        assertThrows(IllegalArgumentException.class, () -> CapRequest.parse(body.replace('\'', '"')));
    }
}
