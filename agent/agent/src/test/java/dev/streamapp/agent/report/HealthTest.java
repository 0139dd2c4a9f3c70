package dev.streamapp.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import dev.streamapp.agent.assignor.AssignorInstaller;
import dev.streamapp.agent.config.Defaults;
import dev.streamapp.agent.config.InstanceConfig;
import dev.streamapp.agent.instance.Instance;
import dev.streamapp.agent.instance.Instances;
import dev.streamapp.agent.kafka.StateDirectory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The answer to the readiness probe in states that a real broker produces only by chance. */
class HealthTest {

    @TempDir
    private Path folder;
    private final List<Instance> instances = new ArrayList<>();
    private final List<FakeStreams> allStreams = new ArrayList<>();
    private final AtomicLong later = new AtomicLong();
    private final Health health = new Health(() -> List.copyOf(instances), () -> System.nanoTime() + later.get());

    /** A KafkaStreams object whose state and metrics are set by hand. */
    private static final class FakeStreams extends KafkaStreams {
        private volatile State state = State.CREATED;
        private volatile Map<MetricName, Metric> metrics = Map.of();
        private final Queue<Map<MetricName, Metric>> earlier = new ConcurrentLinkedQueue<>();
        private volatile CountDownLatch gate = new CountDownLatch(0);
        private final AtomicInteger reads = new AtomicInteger();

        private FakeStreams(Path folder, int number) {
            super(topology(), settings(folder, number));
        }

        private static Topology topology() {
            StreamsBuilder builder = new StreamsBuilder();
            builder.stream("input");
            return builder.build();
        }

        private static Properties settings(Path folder, int number) {
            Properties settings = new Properties();
            settings.putAll(Map.of("application.id", "app-" + number, "bootstrap.servers", "127.0.0.1:1", "state.dir", folder.toString()));
            return settings;
        }

        @Override
        public State state() {
            return state == null ? State.NOT_RUNNING : state;
        }

        @Override
        public Map<MetricName, ? extends Metric> metrics() {
            // The constructor of the superclass asks too, before this one's fields are there.
            if (reads == null) {
                return Map.of();
            }
            reads.incrementAndGet();
            try {
                gate.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            Map<MetricName, Metric> before = earlier.poll();
            return before == null ? metrics : before;
        }

        private void task(String id, String... marks) {
            Map<MetricName, Metric> all = new HashMap<>(metrics);
            for (String mark : marks) {
                all.put(new MetricName(mark, "stream-task-metrics", "", Map.of("task-id", id)), null);
            }
            metrics = all;
        }
    }

    private FakeStreams fakeStreams() {
        FakeStreams fakeStreams = new FakeStreams(folder, allStreams.size());
        allStreams.add(fakeStreams);
        InstanceConfig configuration = new InstanceConfig("app-" + allStreams.size(), new JsonObject(), List.of(), new StateDirectory(folder));
        instances.add(new Instance(fakeStreams, configuration));
        return fakeStreams;
    }

    private FakeStreams rebalancing() throws InterruptedException {
        FakeStreams fakeStreams = fakeStreams();
        fakeStreams.state = KafkaStreams.State.RUNNING;
        assertTrue(health.isReady());
        fakeStreams.state = KafkaStreams.State.REBALANCING;
        return fakeStreams;
    }

    @AfterEach
    void end() {
        allStreams.forEach(fakeStreams -> {
            fakeStreams.gate.countDown();
            fakeStreams.close();
        });
    }

    @Test
    void aJvmWithoutAnInstanceIsNotReady() throws InterruptedException {
        assertFalse(health.isReady());
    }

    @Test
    void beforeTheFirstTimeRunningNothingIsReady() throws InterruptedException {
        FakeStreams fakeStreams = fakeStreams();
        assertFalse(health.isReady(), "created");
        fakeStreams.state = KafkaStreams.State.REBALANCING;
        fakeStreams.task("0_0", "process-total");
        assertFalse(health.isReady(), "joining");
        assertEquals(0, fakeStreams.reads.get(), "what never ran is not looked at");
        fakeStreams.state = KafkaStreams.State.RUNNING;
        assertTrue(health.isReady());
    }

    @Test
    void aRebalanceThatMovesNothingHereChangesNothing() throws InterruptedException {
        FakeStreams fakeStreams = rebalancing();
        fakeStreams.task("0_0", "restore-total", "process-total");
        fakeStreams.task("0_1", "update-total");
        assertTrue(health.isReady());
        fakeStreams.state = KafkaStreams.State.RUNNING;
        assertTrue(health.isReady());
    }

    @Test
    void aTaskThatRestoresMakesUnreadyUntilItRuns() throws InterruptedException {
        FakeStreams fakeStreams = rebalancing();
        fakeStreams.task("0_0", "restore-total");
        assertFalse(health.isReady());
        fakeStreams.task("0_0", "process-total");
        later.addAndGet(TimeUnit.SECONDS.toNanos(2));
        assertTrue(health.isReady());
    }

    @Test
    void aTaskThatIsHandedOverLosesItsMetricsOneByOneAndDoesNotRestore() throws InterruptedException {
        FakeStreams fakeStreams = rebalancing();
        fakeStreams.task("0_1", "restore-total");
        fakeStreams.earlier.add(fakeStreams.metrics);
        fakeStreams.metrics = Map.of();
        fakeStreams.task("0_0", "process-total");
        assertTrue(health.isReady());
        assertEquals(2, fakeStreams.reads.get());
    }

    @Test
    void whatAReportSawOnceIsLookedAtAgain() throws InterruptedException {
        FakeStreams fakeStreams = rebalancing();
        instances.get(0).updateRestoring(Set.of("0_1"), System.nanoTime());
        assertTrue(health.isReady());
        assertEquals(1, fakeStreams.reads.get());
    }

    @Test
    void everyInstanceCountsAndOneThatEndedIsNotAtWork() throws InterruptedException {
        fakeStreams().state = KafkaStreams.State.RUNNING;
        FakeStreams other = fakeStreams();
        for (KafkaStreams.State state : KafkaStreams.State.values()) {
            other.state = state;
            boolean works = state == KafkaStreams.State.RUNNING || state == KafkaStreams.State.REBALANCING && instances.get(1).wasRunning();
            assertEquals(works, health.isReady(), state.name());
        }
        other.state = KafkaStreams.State.RUNNING;
        assertTrue(health.isReady());
        for (KafkaStreams.State ended : Set.of(KafkaStreams.State.ERROR, KafkaStreams.State.NOT_RUNNING, KafkaStreams.State.PENDING_SHUTDOWN)) {
            other.state = ended;
            assertFalse(health.isReady(), ended.name());
        }
    }

    @Test
    void anInstanceThatCouldNotBeTakenIsNotKnownToBeAtWork() throws InterruptedException {
        Instances taken = new Instances();
        Defaults none = new Defaults(Set.of(), new AssignorInstaller(null), () -> "");
        FakeStreams fakeStreams = fakeStreams();
        fakeStreams.state = KafkaStreams.State.RUNNING;
        taken.constructed(fakeStreams, new Object[] {new StreamsConfig(FakeStreams.settings(folder, 0))}, none);
        Health ofTaken = new Health(taken::all, System::nanoTime);
        assertTrue(ofTaken.isReady());
        taken.constructed(new Object(), new Object[] {new StreamsConfig(FakeStreams.settings(folder, 1)) {
            @Override
            public Map<String, ?> values() {
                throw new IllegalStateException("another release");
            }
        }}, none);
        assertFalse(ofTaken.isReady());
    }

    @Test
    void manyProbesLookAtTheTasksOnceASecond() throws InterruptedException {
        FakeStreams fakeStreams = rebalancing();
        fakeStreams.task("0_0", "process-total");
        for (int probe = 0; probe < 200; probe++) {
            assertTrue(health.isReady());
        }
        assertTrue(fakeStreams.reads.get() <= 2, fakeStreams.reads + " looks");
    }

    @Test
    void aLookThatHangsKeepsNoProbeWaitingAndNoPodUnready() throws InterruptedException {
        FakeStreams fakeStreams = rebalancing();
        fakeStreams.task("0_0", "process-total");
        assertTrue(health.isReady());
        fakeStreams.gate = new CountDownLatch(1);
        later.addAndGet(TimeUnit.SECONDS.toNanos(2));
        assertEquals(Collections.nCopies(20, true), answersOf(20));
        assertEquals(2, fakeStreams.reads.get(), "one look for all of them");
        later.addAndGet(TimeUnit.SECONDS.toNanos(10));
        assertEquals(Collections.nCopies(20, false), answersOf(20), "nobody knows any more");
        assertEquals(2, fakeStreams.reads.get());
        fakeStreams.gate.countDown();
        later.set(0);
        assertTrue(health.isReady());
    }

    private List<Boolean> answersOf(int probes) throws InterruptedException {
        List<Boolean> answers = Collections.synchronizedList(new ArrayList<>());
        List<Thread> threads = new ArrayList<>();
        long before = System.nanoTime();
        for (int probe = 0; probe < probes; probe++) {
            Thread thread = new Thread(() -> {
                try {
                    answers.add(health.isReady());
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertTrue(System.nanoTime() - before < TimeUnit.SECONDS.toNanos(1), "all answers within a second");
        return answers;
    }
}
