package dev.streamapp.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import dev.streamapp.agent.apps.Feeder;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.errors.TransactionalIdNotFoundException;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** A process with exactly-once that has copies alone knows its producer ID before its first task, on every release that is laid out and a real broker. */
@Tag("versions")
class WarmUpIT {

    private static final Path KAFKA = Path.of(System.getProperty("kafka.versions"));
    private static final Duration PATIENCE = Duration.ofSeconds(90);
    @TempDir
    private static Path folder;
    private static Broker broker;
    private static Admin admin;

    @BeforeAll
    static void start() throws IOException, InterruptedException, ExecutionException {
        try (Stream<Path> parts = Files.list(KAFKA)) {
            broker = new Broker(parts.filter(path -> path.getFileName().toString().startsWith("kafka_")).findFirst().orElseThrow(), folder,
                "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", "allow.everyone.if.no.acl.found=true",
                "super.users=User:nobody");
        }
        feed();
        admin = Admin.create(Map.of("bootstrap.servers", broker.address));
    }

    private static void feed() throws InterruptedException, ExecutionException {
        Feeder.main(new String[] {broker.address, "2", "2000"});
    }

    @AfterAll
    static void end() {
        admin.close();
        broker.close();
    }

    static Stream<String> versions() throws IOException {
        return VersionsIT.versions();
    }

    private static AppJvm start(String version, String name, String... more) throws IOException, InterruptedException {
        AppJvm app = constructed(version, name, more);
        app.tell("start");
        return app;
    }

    private static AppJvm constructed(String version, String name, String... more) throws IOException, InterruptedException {
        AppJvm.Plan plan = new AppJvm.Plan().defaults("assignor,heartbeat,leave").settings(
                "application.id=warm-" + version + more.length, "bootstrap.servers=" + broker.address, "state.dir=" + folder.resolve(version + name + more.length),
                "processing.guarantee=exactly_once_v2", "session.timeout.ms=6000", "streamapp.assignor.warm.ms=60000").settings(more);
        String classes = Arrays.stream(plan.classPath.split(File.pathSeparator)).filter(entry -> entry.endsWith("test-classes")).findFirst().orElseThrow();
        plan.classPath = classes + File.pathSeparator + AppJvm.jarsOf(KAFKA.resolve("kafka-streams-" + version));
        AppJvm app = new AppJvm(plan);
        app.awaitLine("constructed");
        app.instance();
        announce(app, 1);
        return app;
    }

    private static void announce(AppJvm app, int counter, String... leaving) throws IOException, InterruptedException {
        String ids = leaving.length == 0 ? "" : "\"" + leaving[0] + "\"";
        String epoch = "{\"lease\": 1, \"counter\": " + counter + "}";
        String body = "{\"epoch\": " + epoch + ", \"ttlSeconds\": 120, \"processIds\": [" + ids + "], \"rebalance\": \"Conservative\"}";
        assertEquals(200, app.announce(body).statusCode());
    }

    private static String transactionalId(String version, JsonObject instance, int more) {
        return "warm-" + version + more + "-" + instance.get("processId").getAsString() + "-1";
    }

    private static TransactionDescription transactions(String version, JsonObject instance, int more) throws InterruptedException, ExecutionException {
        String id = transactionalId(version, instance, more);
        try {
            return admin.describeTransactions(List.of(id)).all().get().get(id);
        } catch (ExecutionException e) {
            if (e.getCause() instanceof TransactionalIdNotFoundException) {
                return null;
            }
            throw e;
        }
    }

    @ParameterizedTest
    @MethodSource("versions")
    void itHasAProducerIdAndNoTransactionAndThenCommitsItsFirstTask(String version) throws IOException, InterruptedException, ExecutionException {
        try (AppJvm owner = start(version, "owner")) {
            owner.awaitInstance(PATIENCE, instance -> StreamsApps.count(instance, "active", "running") == 2);
            try (AppJvm fresh = start(version, "fresh")) {
                JsonObject learner = fresh.awaitInstance(PATIENCE, instance -> StreamsApps.count(instance, "standby", null) > 0);
                TransactionDescription before = await(version, learner, TransactionState.EMPTY);
                assertEquals(0, StreamsApps.count(fresh.instance(), "active", null), "it has copies alone");
                announce(owner, 2, owner.instance().get("processId").getAsString());
                announce(fresh, 2, owner.instance().get("processId").getAsString());
                owner.tell("close");
                fresh.awaitInstance(PATIENCE, instance -> StreamsApps.count(instance, "active", "running") == 2);
                feed();
                TransactionDescription after = await(version, learner, TransactionState.COMPLETE_COMMIT);
                assertEquals(before.producerId(), after.producerId(), "Kafka Streams has used the producer as it was");
                assertFalse(fresh.errors().contains("streamapp-agent"), fresh.errors());
            }
        }
    }

    private static TransactionDescription await(String version, JsonObject learner, TransactionState wanted) throws InterruptedException, ExecutionException {
        long end = System.nanoTime() + PATIENCE.toNanos();
        TransactionDescription last = null;
        while (System.nanoTime() < end) {
            last = transactions(version, learner, 0);
            if (last != null && last.state() == wanted) {
                return last;
            }
            Thread.sleep(100);
        }
        throw new AssertionError("not " + wanted + " within " + PATIENCE + "; last: " + last);
    }

    @ParameterizedTest
    @MethodSource("versions")
    void aStandbysProducerIsLeftToKafka(String version) throws IOException, InterruptedException, ExecutionException {
        String standbys = "num.standby.replicas=1";
        try (AppJvm owner = start(version, "owner", standbys)) {
            owner.awaitInstance(PATIENCE, instance -> StreamsApps.count(instance, "active", "running") == 2);
            try (AppJvm fresh = start(version, "fresh", standbys)) {
                JsonObject learner = fresh.awaitInstance(PATIENCE, instance -> StreamsApps.count(instance, "standby", null) == 2);
                Thread.sleep(2_000);
                assertEquals(null, transactions(version, learner, 1));
            }
        }
    }

    @ParameterizedTest
    @MethodSource("versions")
    void ifTheBrokerRefusesKafkaStreamsReportsIt(String version) throws IOException, InterruptedException, ExecutionException {
        String[] more = {"commit.interval.ms=100", "num.standby.replicas=0"};
        try (AppJvm owner = start(version, "owner", more)) {
            owner.awaitInstance(PATIENCE, instance -> StreamsApps.count(instance, "active", "running") == 2);
            try (AppJvm fresh = constructed(version, "fresh", more)) {
                deny(transactionalId(version, fresh.instance(), more.length));
                fresh.tell("start");
                fresh.awaitInstance(PATIENCE, instance -> StreamsApps.count(instance, "standby", null) > 0);
                Thread.sleep(3_000);
                assertEquals("", fresh.errors(), "a process that has copies alone goes on");
                announce(owner, 2, owner.instance().get("processId").getAsString());
                announce(fresh, 2, owner.instance().get("processId").getAsString());
                owner.tell("close");
                String errors = awaitError(fresh, "StreamsException: Error encountered trying to initialize transactions");
                assertTrue(errors.contains("Caused by: org.apache.kafka.common.errors.TransactionalIdAuthorizationException"), errors);
                assertFalse(errors.contains("because we are in an error state"), errors);
            }
        }
    }

    private static String awaitError(AppJvm app, String wanted) throws IOException, InterruptedException {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (!app.errors().contains(wanted)) {
            assertTrue(System.nanoTime() < end, app.errors());
            Thread.sleep(100);
        }
        Thread.sleep(1_000);
        return app.errors();
    }

    private static void deny(String transactionalId) throws InterruptedException, ExecutionException {
        ResourcePattern resource = new ResourcePattern(ResourceType.TRANSACTIONAL_ID, transactionalId, PatternType.LITERAL);
        AccessControlEntry entry = new AccessControlEntry("User:*", "*", AclOperation.WRITE, AclPermissionType.DENY);
        admin.createAcls(List.of(new AclBinding(resource, entry))).all().get();
    }
}
