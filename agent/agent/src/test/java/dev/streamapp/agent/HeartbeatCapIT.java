package dev.streamapp.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The cap of the heartbeat interval on every release with the streams group protocol that is laid out, against a real broker. */
@Tag("versions")
class HeartbeatCapIT {

    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final int BROKERS_MILLIS = 5_000;
    @TempDir
    private static Path folder;
    private static StreamsApps apps;

    @BeforeAll
    static void start() throws IOException, InterruptedException, ExecutionException {
        apps = new StreamsApps(folder, 2);
    }

    @AfterAll
    static void end() {
        apps.close();
    }

    static Stream<String> versions() throws IOException {
        return StreamsApps.versions();
    }

    private static JsonObject running(AppJvm app) throws IOException, InterruptedException {
        return app.awaitInstance(PATIENCE, one -> StreamsApps.count(one, "active", "running") == 2 && one.get("clientState").getAsString().equals("RUNNING"));
    }

    /** Waits for an interval, by Kafka's own object. */
    private static JsonObject awaitInterval(AppJvm app, int millis, Duration patience) throws IOException, InterruptedException {
        long end = System.nanoTime() + patience.toNanos();
        for (JsonObject report = app.report(); System.nanoTime() < end; report = app.report()) {
            JsonObject heartbeat = report.getAsJsonObject("heartbeat");
            if (heartbeat.has("intervalMillis") && heartbeat.get("intervalMillis").getAsInt() == millis) {
                return heartbeat;
            }
            Thread.sleep(50);
        }
        throw new AssertionError("not " + millis + " ms within " + patience + ": " + app.report());
    }

    @ParameterizedTest
    @MethodSource("versions")
    void theIntervalIsCappedAtOnceAndGoesBackByItself(String version) throws IOException, InterruptedException {
        try (AppJvm app = apps.start(version, "capped-" + version, "a", "heartbeat")) {
            JsonObject instance = running(app);
            assertFalse(instance.get("asides").toString().contains("heartbeatCap"), instance.toString());
            assertEquals(Set.of("intervalMillis"), awaitInterval(app, BROKERS_MILLIS, PATIENCE).keySet());

            long before = app.heartbeats();
            assertEquals(200, app.cap(200, 6).statusCode());
            // The timer that ran had up to five seconds to go.
            assertEquals(200, awaitInterval(app, 200, Duration.ofMillis(1_500)).get("capMillis").getAsInt());
            Thread.sleep(3_000);
            long capped = app.heartbeats() - before;
            assertTrue(capped >= 6, capped + " heartbeats in more than 3 s");

            awaitInterval(app, BROKERS_MILLIS, Duration.ofSeconds(6));   // It expired without a word.
            before = app.heartbeats();
            Thread.sleep(3_000);
            assertTrue(app.heartbeats() - before <= 1);

            assertEquals(200, app.cap(200, 100).statusCode());
            awaitInterval(app, 200, Duration.ofMillis(1_500));
            assertEquals(200, app.cap(200, 0).statusCode());
            awaitInterval(app, BROKERS_MILLIS, Duration.ofSeconds(2));
            assertEquals(400, app.cap(99, 10).statusCode());
            assertEquals(400, app.cap(5_001, 10).statusCode());
            assertEquals(400, app.cap(300, 121).statusCode());
        }
    }

    @ParameterizedTest
    @MethodSource("versions")
    void nothingIsCappedWhereTheUserLeavesHeartbeatsAlone(String version) throws IOException, InterruptedException {
        try (AppJvm app = apps.start(version, "alone-" + version, "a", "")) {
            running(app);
            Thread.sleep(1_000);   // Joining takes more heartbeats.
            assertFalse(app.report().has("heartbeat"));
            assertEquals(200, app.cap(200, 60).statusCode());
            long before = app.heartbeats();
            Thread.sleep(2_000);
            assertTrue(app.heartbeats() - before <= 1);
        }
    }
}
