package dev.streamapp.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.streamapp.agent.assignor.AssignorInstaller;
import dev.streamapp.agent.config.Defaults;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The shipped jar on a real KafkaStreams object whose broker does not answer. */
class AgentIT {

    @TempDir
    private Path folder;

    @Test
    void theReportSaysWhatAnInstanceKnowsByItself() throws IOException, InterruptedException {
        AppJvm.Plan plan = AppJvm.Plan.withoutBroker(folder).settings("num.standby.replicas=2", "acceptable.recovery.lag=77");
        try (AppJvm app = new AppJvm(plan)) {
            app.awaitLine("constructed");
            JsonObject instance = app.instance();
            assertEquals("counting", instance.get("applicationId").getAsString());
            assertEquals("CREATED", instance.get("clientState").getAsString());
            assertEquals(2, instance.get("standbyReplicas").getAsInt());
            assertEquals(77, instance.get("acceptableRecoveryLag").getAsInt());
            assertEquals("classic", instance.get("protocol").getAsString());
            assertEquals(3000, instance.get("heartbeatMillis").getAsInt());
            assertEquals(Defaults.STOCK_ASSIGNOR, instance.getAsJsonObject("assignor").get("class").getAsString());
            assertEquals("3.8.1", instance.get("kafkaVersion").getAsString());
            String processId = instance.get("processId").getAsString();
            assertEquals("counting-" + processId, instance.get("clientId").getAsString());
            assertTrue(instance.get("topology").getAsString().contains("stores: [counts]"), instance.toString());
            assertEquals(Map.of("assignor", "SwitchedOff", "heartbeat", "SwitchedOff", "leave", "SwitchedOff"), limitations(instance));
            JsonObject agent = app.report().getAsJsonObject("agent");
            assertEquals("uid-1", agent.get("podUid").getAsString());
            assertEquals("0.1.0", agent.get("version").getAsString());
            assertEquals("", app.errors());
        }
    }

    @Test
    void eachLookHasItsNumberAndItsAgeWithinOneIncarnation() throws IOException, InterruptedException {
        try (AppJvm app = new AppJvm(AppJvm.Plan.withoutBroker(folder))) {
            app.instance();
            Thread.sleep(1100);
            JsonObject first = app.report().getAsJsonObject("agent");
            JsonObject again = app.report().getAsJsonObject("agent");
            assertEquals(first.get("sequence"), again.get("sequence"));
            assertTrue(again.get("ageMillis").getAsLong() >= first.get("ageMillis").getAsLong());
            assertTrue(again.get("ageMillis").getAsLong() < 1000, again.toString());
            Thread.sleep(1100);
            JsonObject later = app.report().getAsJsonObject("agent");
            assertEquals(first.get("sequence").getAsLong() + 1, later.get("sequence").getAsLong());
            assertEquals(first.get("incarnation"), later.get("incarnation"));
        }
    }

    @Test
    void unsetSettingsGetTheDefaultsThatAreSwitchedOn() throws IOException, InterruptedException {
        try (AppJvm app = new AppJvm(AppJvm.Plan.withoutBroker(folder).defaults("assignor,heartbeat,leave"))) {
            JsonObject instance = app.instance();
            assertEquals(500, instance.get("heartbeatMillis").getAsInt());
            assertTrue(instance.getAsJsonObject("assignor").get("isOurs").getAsBoolean(), instance.toString());
            assertEquals(Map.of("heartbeat.interval.ms", "500", "task.assignor.class", AssignorInstaller.NAME), given(instance));
            assertFalse(instance.get("leavesOnClose").getAsBoolean());
            assertEquals(Map.of("leave", "OlderStreams"), limitations(instance));
        }
    }

    @Test
    void withExactlyOnceFetchesOfTheRestoreConsumerReturnSooner() throws IOException, InterruptedException {
        AppJvm.Plan plan = AppJvm.Plan.withoutBroker(folder).defaults("heartbeat").settings("processing.guarantee=exactly_once_v2");
        try (AppJvm app = new AppJvm(plan)) {
            assertEquals(Map.of("heartbeat.interval.ms", "500", "restore.consumer.fetch.max.wait.ms", "100"), given(app.instance()));
        }
    }

    @Test
    void anExplicitWaitOfTheRestoreConsumerStays() throws IOException, InterruptedException {
        AppJvm.Plan plan = AppJvm.Plan.withoutBroker(folder).defaults("heartbeat").settings(
                "processing.guarantee=exactly_once_v2", "restore.consumer.fetch.max.wait.ms=250");
        try (AppJvm app = new AppJvm(plan)) {
            assertEquals(Map.of("heartbeat.interval.ms", "500"), given(app.instance()));
        }
    }

    @Test
    void explicitSettingsWin() throws IOException, InterruptedException {
        AppJvm.Plan plan = AppJvm.Plan.withoutBroker(folder).defaults("assignor,heartbeat").settings(
                "task.assignor.class=org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor", "consumer.heartbeat.interval.ms=1234");
        try (AppJvm app = new AppJvm(plan)) {
            JsonObject instance = app.instance();
            assertEquals(1234, instance.get("heartbeatMillis").getAsInt());
            assertEquals("org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor",
                         instance.getAsJsonObject("assignor").get("class").getAsString());
            assertEquals(Map.of(), given(instance));
            assertEquals("OwnAssignor", limitations(instance).get("assignor"));
        }
    }

    @Test
    void theInternalAssignorSettingWinsToo() throws IOException, InterruptedException {
        String own = "org.apache.kafka.streams.processor.internals.assignment.FallbackPriorTaskAssignor";
        AppJvm.Plan plan = AppJvm.Plan.withoutBroker(folder).defaults("assignor").settings("internal.task.assignor.class=" + own);
        try (AppJvm app = new AppJvm(plan)) {
            JsonObject instance = app.instance();
            assertEquals(own, instance.getAsJsonObject("assignor").get("class").getAsString());
            assertEquals("OwnAssignor", limitations(instance).get("assignor"));
        }
    }

    @Test
    void severalInstancesOfOneJvmAreReported() throws IOException, InterruptedException {
        try (AppJvm app = new AppJvm(AppJvm.Plan.withoutBroker(folder))) {
            app.instance();
            app.tell("second");
            Thread.sleep(1100);
            JsonArray instances = app.report().getAsJsonArray("instances");
            assertEquals(2, instances.size());
            assertEquals("counting", instances.get(0).getAsJsonObject().get("applicationId").getAsString());
            assertEquals("counting-second", instances.get(1).getAsJsonObject().get("applicationId").getAsString());
        }
    }

    @Test
    void theSystemPropertiesStayStringsAndTheOutputTheApplications() throws IOException, InterruptedException {
        try (AppJvm app = new AppJvm(AppJvm.Plan.withoutBroker(folder))) {
            assertEquals("constructed", app.line());
            app.instance();
            app.tellAndHear("properties", "properties whole");
            assertEquals("", app.errors());
        }
    }

    @Test
    void theReportSaysWhatDecidesHowLongADepartureIsNoticed() throws IOException, InterruptedException {
        AppJvm.Plan plan = AppJvm.Plan.withoutBroker(folder).settings("session.timeout.ms=30000", "consumer.group.instance.id=pod-0");
        try (AppJvm app = new AppJvm(plan)) {
            JsonObject instance = app.instance();
            assertEquals(30_000, instance.get("sessionTimeoutMillis").getAsInt());
            assertTrue(instance.get("isStatic").getAsBoolean());
        }
    }

    @Test
    void theStateDirectoryIsSaidWithItsWholePath() throws IOException, InterruptedException {
        AppJvm.Plan plan = AppJvm.Plan.withoutBroker(folder).settings("state.dir=relative-" + folder.getFileName());
        Path there = Path.of("relative-" + folder.getFileName()).toAbsolutePath();
        try (AppJvm app = new AppJvm(plan)) {
            JsonObject instance = app.instance();
            assertEquals(there.toString(), instance.get("stateDirectory").getAsString());
            assertEquals(45_000, instance.get("sessionTimeoutMillis").getAsInt());
            assertFalse(instance.get("isStatic").getAsBoolean());
        } finally {
            try (Stream<Path> left = Files.walk(there)) {
                left.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
            }
        }
    }

    @Test
    void whatCleanUpTakesAwayBeforeTheStartIsCounted() throws IOException, InterruptedException {
        for (String task : List.of("0_0", "0_1", "1_12")) {
            Files.createDirectories(folder.resolve("counting/" + task + "/rocksdb/counts"));
        }
        Files.createDirectories(folder.resolve("counting/0_2"));
        try (AppJvm app = new AppJvm(AppJvm.Plan.withoutBroker(folder))) {
            assertFalse(app.instance().has("cleanedTasks"));
            app.tell("clean");
            app.awaitInstance(Duration.ofSeconds(10), instance -> instance.has("cleanedTasks") && instance.get("cleanedTasks").getAsInt() == 3);
            assertFalse(Files.exists(folder.resolve("counting/0_0")));
            assertEquals("", app.errors());
        }
    }

    @Test
    void anInstanceThatHasNotJoinedIsNotReady() throws IOException, InterruptedException {
        try (AppJvm app = new AppJvm(AppJvm.Plan.withoutBroker(folder))) {
            assertEquals("CREATED", app.instance().get("clientState").getAsString());
            assertEquals(503, app.health());
            app.tell("start");
            app.awaitInstance(Duration.ofSeconds(10), instance -> instance.get("clientState").getAsString().equals("REBALANCING"));
            assertEquals(503, app.health(), "nothing restores, but it never ran");
        }
    }

    @Test
    void anInstanceThatHasEndedIsNotReady() throws IOException, InterruptedException {
        try (AppJvm app = new AppJvm(AppJvm.Plan.withoutBroker(folder))) {
            app.instance();
            app.tell("close");
            app.awaitInstance(Duration.ofSeconds(10), instance -> instance.get("clientState").getAsString().equals("NOT_RUNNING"));
            assertEquals(503, app.health());
        }
    }

    @Test
    void aTakenPortHurtsNobody() throws IOException {
        try (ServerSocket taken = new ServerSocket(0)) {
            AppJvm.Plan plan = AppJvm.Plan.withoutBroker(folder);
            plan.environment.put("STREAMAPP_AGENT_PORT", String.valueOf(taken.getLocalPort()));
            try (AppJvm app = new AppJvm(plan)) {
                app.awaitLine("constructed");
                app.tell("close");
                assertEquals(1, app.errors().lines().count(), app.errors());
                assertTrue(app.errors().startsWith("streamapp-agent: the server stays off, port " + taken.getLocalPort()), app.errors());
            }
        }
    }

    @Test
    void aJvmThatDidNotResolveTheServersModuleGetsItFromItsRuntime() throws IOException, InterruptedException {
        AppJvm.Plan plan = AppJvm.Plan.withoutBroker(folder).defaults("assignor");
        plan.options.addAll(java.util.List.of("--limit-modules", "java.base,java.instrument,java.management,java.naming,java.security.sasl,java.sql"));
        try (AppJvm app = new AppJvm(plan)) {
            assertTrue(app.instance().getAsJsonObject("assignor").get("isOurs").getAsBoolean());
            assertEquals("", app.errors());
        }
    }

    @Test
    void withoutATokenTheServerStaysOff() throws IOException {
        AppJvm.Plan plan = AppJvm.Plan.withoutBroker(folder);
        plan.environment.put("STREAMAPP_AGENT_TOKEN_SHA256", "");
        try (AppJvm app = new AppJvm(plan)) {
            app.awaitLine("constructed");
            app.tell("close");
            assertEquals("streamapp-agent: STREAMAPP_AGENT_TOKEN_SHA256 is empty, the server stays off\n", app.errors());
        }
    }

    private static Map<String, String> limitations(JsonObject instance) {
        Map<String, String> kinds = new TreeMap<>();
        for (JsonElement limitation : instance.getAsJsonArray("asides")) {
            kinds.put(limitation.getAsJsonObject().get("what").getAsString(), limitation.getAsJsonObject().get("kind").getAsString());
        }
        return kinds;
    }

    private static Map<String, String> given(JsonObject instance) {
        Map<String, String> given = new TreeMap<>();
        for (JsonElement entry : instance.getAsJsonArray("defaultsGiven")) {
            given.put(entry.getAsJsonObject().get("name").getAsString(), entry.getAsJsonObject().get("value").getAsString());
        }
        return given;
    }
}
