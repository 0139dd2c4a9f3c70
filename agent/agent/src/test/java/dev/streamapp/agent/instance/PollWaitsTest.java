package dev.streamapp.agent.instance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.streams.StreamsConfig;
import org.junit.jupiter.api.Test;

class PollWaitsTest {

    private static final Duration USUAL = Duration.ofMillis(100);
    private final AtomicLong now = new AtomicLong(-5_000_000_000L);
    private final PollWaits waits = new PollWaits(now::get);

    private void pass(long millis) {
        now.addAndGet(TimeUnit.MILLISECONDS.toNanos(millis));
    }

    private static StreamsConfig config(Object... more) {
        Map<String, Object> settings = new java.util.HashMap<>(Map.of("application.id", "app", "bootstrap.servers", "127.0.0.1:1"));
        for (int at = 0; at < more.length; at += 2) {
            settings.put((String) more[at], more[at + 1]);
        }
        return new StreamsConfig(settings);
    }

    @Test
    void pollsAreShortForTwoSecondsAfterAChange() {
        assertNull(waits.shortened("app", USUAL));
        waits.changed("app");
        assertEquals(Duration.ofMillis(10), waits.shortened("app", USUAL));
        pass(1_500);
        waits.changed("app");
        pass(2_000);
        assertEquals(Duration.ofMillis(10), waits.shortened("app", USUAL));
        pass(1);
        assertNull(waits.shortened("app", USUAL));
    }

    @Test
    void otherClientsAndShorterPollsStayAsTheyAre() {
        waits.changed("app");
        assertNull(waits.shortened("other", USUAL));
        assertNull(waits.shortened("", USUAL));
        assertNull(waits.shortened("app", Duration.ofMillis(10)));
        assertNull(waits.shortened("app", Duration.ZERO));
    }

    @Test
    void onlyThreadsOfKafkaStreamsCount() {
        waits.changed();
        assertNull(waits.shortened(USUAL));
        assertEquals("my-app", TaskTimes.clientOf("my-app-StreamThread-12"));
        assertEquals("my-app", TaskTimes.clientOf("my-app-StateUpdater-1"));
        assertEquals("", TaskTimes.clientOf("main"));
    }

    @Test
    void theStateUpdaterIsOfTheSameClientAsItsThread() throws InterruptedException {
        Thread thread = new Thread(waits::changed, "app-StreamThread-1");
        thread.start();
        thread.join();
        Duration[] found = new Duration[1];
        Thread updater = new Thread(() -> found[0] = waits.shortened(USUAL), "app-StateUpdater-1");
        updater.start();
        updater.join();
        assertEquals(Duration.ofMillis(10), found[0]);
    }

    @Test
    void anExplicitSettingIsKept() throws ReflectiveOperationException {
        waits.configured(config("poll.ms", 100), Map.of("client.id", "own-StreamThread-1-consumer"));
        waits.configured(config(), Map.of("client.id", "app-StreamThread-1-consumer"));
        waits.changed("own");
        waits.changed("app");
        assertNull(waits.shortened("own", USUAL));
        assertEquals(Duration.ofMillis(10), waits.shortened("app", USUAL));
    }

    @Test
    void manyClientsAreBounded() {
        for (int client = 0; client < 200; client++) {
            waits.changed("app" + client);
        }
        assertEquals(Duration.ofMillis(10), waits.shortened("app99", USUAL));
        assertNull(waits.shortened("app100", USUAL));
        pass(2_001);
        waits.changed("app100");
        assertEquals(Duration.ofMillis(10), waits.shortened("app100", USUAL));
    }
}
