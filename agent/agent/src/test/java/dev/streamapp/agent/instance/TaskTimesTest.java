package dev.streamapp.agent.instance;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class TaskTimesTest {

    private final AtomicLong now = new AtomicLong(-5_000_000_000L);
    private final TaskTimes times = new TaskTimes(now::get);

    private void pass(long millis) {
        now.addAndGet(TimeUnit.MILLISECONDS.toNanos(millis));
    }

    private String told(String client) {
        return times.json(client, now.get()).toString();
    }

    @Test
    void aTaskBeginsWithRunningAndStopsWithTheNextState() {
        times.changed("app", "0_1", "RESTORING");
        assertEquals("[]", told("app"));
        times.changed("app", "0_1", "RUNNING");
        pass(400);
        assertEquals("[{\"id\":\"0_1\",\"startedAgoMillis\":400}]", told("app"));
        times.changed("app", "0_1", "SUSPENDED");
        pass(50);
        times.changed("app", "0_1", "CLOSED");
        assertEquals("[{\"id\":\"0_1\",\"startedAgoMillis\":450,\"stoppedAgoMillis\":50}]", told("app"));
        times.changed("app", "0_1", "RUNNING");
        assertEquals("[{\"id\":\"0_1\",\"startedAgoMillis\":0,\"stoppedAgoMillis\":50}]", told("app"));
    }

    @Test
    void anInstanceHasItsOwnTimes() {
        times.changed("app", "0_0", "RUNNING");
        assertEquals("[]", told("other"));
    }

    @Test
    void whatChangedLongAgoIsNoNews() {
        times.changed("app", "0_0", "RUNNING");
        times.changed("app", "0_1", "RUNNING");
        times.changed("app", "0_1", "CLOSED");
        pass(TimeUnit.MINUTES.toMillis(11));
        assertEquals("[]", told("app"));
        times.changed("app", "0_0", "SUSPENDED");
        assertEquals("[{\"id\":\"0_0\",\"startedAgoMillis\":660000,\"stoppedAgoMillis\":0}]", told("app"));
    }

    @Test
    void thousandsOfTasksLeaveTheLastOnes() {
        for (int task = 0; task < 2_001; task++) {
            times.changed("app", "0_" + task, "RUNNING");
        }
        assertEquals(2_000, times.json("app", now.get()).size());
    }
}
