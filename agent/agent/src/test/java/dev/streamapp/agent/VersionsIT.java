package dev.streamapp.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.streamapp.agent.apps.Feeder;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The shipped jar and its assignor on every release of Kafka Streams that is laid out, against a real broker. */
@Tag("versions")
class VersionsIT {

    private static final Path KAFKA = Path.of(System.getProperty("kafka.versions"));
    private static final int PARTITIONS = 4;
    private static final int RECORDS = 200_000;
    private static final Duration PATIENCE = Duration.ofSeconds(90);
    @TempDir
    private static Path folder;
    private static Broker broker;
    private static Admin admin;

    @BeforeAll
    static void start() throws IOException, InterruptedException, ExecutionException {
        try (Stream<Path> parts = Files.list(KAFKA)) {
            broker = new Broker(parts.filter(path -> path.getFileName().toString().startsWith("kafka_")).findFirst().orElseThrow(), folder);
        }
        Feeder.main(new String[] {broker.address, String.valueOf(PARTITIONS), String.valueOf(RECORDS)});
        admin = Admin.create(Map.of("bootstrap.servers", broker.address));
    }

    @AfterAll
    static void end() {
        admin.close();
        broker.close();
    }

    static Stream<String> versions() throws IOException {
        try (Stream<Path> parts = Files.list(KAFKA)) {
            List<String> found = parts.map(path -> path.getFileName().toString()).filter(name -> name.startsWith("kafka-streams-"))
                    .map(name -> name.substring("kafka-streams-".length())).sorted().toList();
            return found.stream();
        }
    }

    private static AppJvm start(String version, String name, String... more) throws IOException {
        AppJvm app = constructed(version, name, more);
        app.tell("start");
        return app;
    }

    private static AppJvm constructed(String version, String name, String... more) throws IOException {
        AppJvm.Plan plan = new AppJvm.Plan().defaults("assignor,heartbeat,leave").settings(
                "application.id=app-" + version, "bootstrap.servers=" + broker.address, "state.dir=" + folder.resolve(version + name),
                "num.standby.replicas=1", "commit.interval.ms=500").settings(more);
        String classes = Arrays.stream(plan.classPath.split(File.pathSeparator)).filter(entry -> entry.endsWith("test-classes")).findFirst().orElseThrow();
        plan.classPath = classes + File.pathSeparator + AppJvm.jarsOf(KAFKA.resolve("kafka-streams-" + version));
        AppJvm app = new AppJvm(plan);
        app.awaitLine("constructed");
        return app;
    }

    @ParameterizedTest
    @MethodSource("versions")
    void theReportFollowsTasksThroughTheirLives(String version) throws IOException, InterruptedException, ExecutionException {
        boolean leaves = !version.startsWith("3.") && !version.startsWith("4.0") && !version.startsWith("4.1");
        // Where close() leaves, the group need not wait for the session to end; elsewhere it must.
        String session = "session.timeout.ms=" + (leaves ? 45_000 : 6_000);
        try (AppJvm first = start(version, "first", session); Prober probes = new Prober(first)) {
            JsonObject owner = first.awaitInstance(PATIENCE, instance -> tasks(instance).equals(all("active running")));
            assertEquals(version, owner.get("kafkaVersion").getAsString());
            assertEquals(500, owner.get("heartbeatMillis").getAsInt());
            assertEquals(leaves, owner.get("leavesOnClose").getAsBoolean());
            assertEquals(leaves ? 45_000 : 6_000, owner.get("sessionTimeoutMillis").getAsInt());
            assertFalse(owner.get("isStatic").getAsBoolean());
            assertEquals(folder.resolve(version + "first").toString(), owner.get("stateDirectory").getAsString());
            assertFalse(owner.has("cleanedTasks"), owner.toString());
            assertTrue(owner.getAsJsonObject("assignor").get("isOurs").getAsBoolean(), owner.toString());
            assertEquals("", owner.getAsJsonObject("assignor").getAsJsonObject("lastRound").get("fellBack").getAsString());
            try (AppJvm second = start(version, "second", session)) {
                // Not unknown: until somebody says so, an assignor with a fresh agent moves nothing and places no standby.
                announce(first, 1);
                announce(second, 1);
                second.awaitInstance(PATIENCE, instance -> hasCaughtUp(instance, version));
                assertEquals("ok", second.send(second.to("/healthz").GET()).body());
                assertEquals(List.of(503, 200), probes.answers(), "ready when it ran, and in every rebalance since: none made it restore");
                String leaver = owner.get("processId").getAsString();
                announce(first, 2, leaver);
                announce(second, 2, leaver);
                first.tell("close-within");
                assertEquals(leaves ? 1 : 2, members(version), "members right after close()");
                JsonObject heir = second.awaitInstance(Duration.ofSeconds(20), instance -> tasks(instance).equals(all("active running")));
                assertEquals(all("").keySet(), times(heir, "startedAgoMillis").keySet());
                Map<String, Long> stopped = times(first.instance(), "stoppedAgoMillis");
                assertEquals(all("").keySet(), stopped.keySet(), "what ran in the first process stopped there");
                announce(second, 3, second.instance().get("processId").getAsString());
            }
        }
        seeRestoring(version, session);
    }

    /** A disk that the application empties before it starts: the actives restore from the changelog, slowly, with positions that rise to its end. */
    private static void seeRestoring(String version, String session) throws IOException, InterruptedException {
        try (AppJvm cold = constructed(version, "first", session, "restore.consumer.max.poll.records=10", "restore.consumer.fetch.max.bytes=1000")) {
            cold.tell("clean");
            cold.tell("start");
            JsonObject restoring = cold.awaitInstance(PATIENCE, instance -> tasks(instance).containsValue("active restoring")
                                                                            && positions(instance).values().stream().anyMatch(at -> at > 0));
            assertEquals("REBALANCING", restoring.get("clientState").getAsString());
            positions(restoring).forEach((store, position) -> assertTrue(position >= 0 && position <= RECORDS, restoring.toString()));
            assertEquals(PARTITIONS, restoring.get("cleanedTasks").getAsInt(), restoring.toString());
            assertEquals(503, cold.health());
            assertFalse(restoring.get("asides").toString().contains("Failed"), restoring.toString());
            announce(cold, 4, restoring.get("processId").getAsString());
        }
    }

    /** Asks for an instance's health as often as it can, since a rebalance may last for milliseconds, and keeps every answer that differs from the one before. */
    private static final class Prober implements AutoCloseable {
        private final List<Integer> answers = new ArrayList<>();
        private final Thread thread;
        private volatile boolean ended;

        private Prober(AppJvm app) {
            thread = new Thread(() -> ask(app));
            thread.start();
        }

        private void ask(AppJvm app) {
            try {
                for (; !ended; Thread.sleep(2)) {
                    try {
                        int answer = app.health();
                        if (answers.isEmpty() || answers.get(answers.size() - 1) != answer) {
                            answers.add(answer);
                        }
                    } catch (java.net.ConnectException e) {
                        // The server begins a moment after the first instance.
                    }
                }
            } catch (IOException | InterruptedException e) {
                answers.add(-1);
            }
        }

        private List<Integer> answers() throws InterruptedException {
            ended = true;
            thread.join();
            return answers;
        }

        @Override
        public void close() {
            ended = true;
        }
    }

    private static void announce(AppJvm app, int counter, String... leaving) throws IOException, InterruptedException {
        String ids = leaving.length == 0 ? "" : "\"" + leaving[0] + "\"";
        String body = "{\"epoch\": {\"lease\": 1, \"counter\": " + counter + "}, \"ttlSeconds\": 60, \"processIds\": [" + ids
                      + "], \"rebalance\": \"Conservative\"}";
        for (int attempt = 0; attempt < 50; attempt++) {
            try {
                assertEquals(200, app.announce(body).statusCode());
                return;
            } catch (java.net.ConnectException e) {
                Thread.sleep(100);   // The server begins a moment after the first instance.
            }
        }
        throw new AssertionError("the server did not begin");
    }

    private static Map<String, String> all(String roleAndState) {
        Map<String, String> tasks = new TreeMap<>();
        for (int i = 0; i < PARTITIONS; i++) {
            tasks.put("0_" + i, roleAndState);
        }
        return tasks;
    }

    private static Map<String, String> tasks(JsonObject instance) {
        Map<String, String> tasks = new TreeMap<>();
        for (JsonElement element : instance.getAsJsonArray("tasks")) {
            JsonObject task = element.getAsJsonObject();
            String state = task.has("state") ? " " + task.get("state").getAsString() : "";
            tasks.put(task.get("id").getAsString(), task.get("role").getAsString() + state);
        }
        return tasks;
    }

    /** By task, how long ago it started or stopped. */
    private static Map<String, Long> times(JsonObject instance, String what) {
        Map<String, Long> times = new TreeMap<>();
        for (JsonElement element : instance.getAsJsonArray("taskTimes")) {
            if (element.getAsJsonObject().has(what)) {
                times.put(element.getAsJsonObject().get("id").getAsString(), element.getAsJsonObject().get(what).getAsLong());
            }
        }
        return times;
    }

    private static Map<String, Long> positions(JsonObject instance) {
        Map<String, Long> positions = new TreeMap<>();
        for (JsonElement task : instance.getAsJsonArray("tasks")) {
            if (task.getAsJsonObject().has("stores")) {
                for (JsonElement element : task.getAsJsonObject().getAsJsonArray("stores")) {
                    JsonObject store = element.getAsJsonObject();
                    positions.put(store.get("store").getAsString() + "-" + store.get("partition").getAsString(), store.get("position").getAsLong());
                }
            }
        }
        return positions;
    }

    /** A copy of every task, each standby at the end of its changelog; some may be active by then, the assignor levels behind ready copies. */
    private static boolean hasCaughtUp(JsonObject instance, String version) {
        Map<String, String> tasks = tasks(instance);
        Map<String, Long> wanted = ends(version);
        wanted.keySet().removeIf(store -> !"standby".equals(tasks.get("0_" + store.substring("counts-".length()))));
        return tasks.keySet().equals(all("").keySet()) && !tasks.containsValue("active restoring") && positions(instance).equals(wanted);
    }

    private static int members(String version) throws InterruptedException, ExecutionException {
        String group = "app-" + version;
        return admin.describeConsumerGroups(List.of(group)).all().get().get(group).members().size();
    }

    private static Map<String, Long> ends(String version) {
        try {
            Map<TopicPartition, OffsetSpec> wanted = new java.util.HashMap<>();
            for (int i = 0; i < PARTITIONS; i++) {
                wanted.put(new TopicPartition("app-" + version + "-counts-changelog", i), OffsetSpec.latest());
            }
            Map<String, Long> ends = new TreeMap<>();
            admin.listOffsets(wanted).all().get().forEach((partition, end) -> ends.put("counts-" + partition.partition(), end.offset()));
            return ends;
        } catch (InterruptedException | ExecutionException e) {
            throw new IllegalStateException(e);
        }
    }
}
