package dev.streamapp.agent.warmup;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.Test;

/** Only the producers of stream threads are prepared, and the application's own code never runs for it. */
class WarmUpTest {

    private static final Map<String, Object> SETTINGS = Map.of("bootstrap.servers", "127.0.0.1:1", "client.id", "app-StreamThread-1-producer",
            "transactional.id", "app-1", "max.block.ms", 1);
    private final WarmUp warmUp = new WarmUp();

    /** An application may have a producer of its own. */
    private static final class OwnProducer extends KafkaProducer<byte[], byte[]> {
        private OwnProducer() {
            super(SETTINGS, new ByteArraySerializer(), new ByteArraySerializer());
        }
    }

    /** A class of an application. */
    static final class Initialized {
        static {
            System.setProperty("initialized", "yes");
        }
    }

    private static KafkaProducer<byte[], byte[]> producer() {
        return new KafkaProducer<>(SETTINGS, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static Map<String, Object> with(String name, Object value) {
        Map<String, Object> settings = new HashMap<>(SETTINGS);
        settings.put(name, value);
        return settings;
    }

    private static boolean isInitialized(Map<String, Object> settings, boolean onDemand) {
        ThreadProducer producer = new ThreadProducer(new Object(), settings);
        producer.allow(onDemand);
        return producer.initialization().isAllowed();
    }

    @Test
    void transactionsAreInitializedOnlyWhereATaskFollowsEachCopy() {
        assertTrue(isInitialized(SETTINGS, true));
        assertFalse(isInitialized(SETTINGS, false), "a standby can stay one until the broker forgets the producer");
        assertFalse(isInitialized(Map.of("client.id", "app-StreamThread-1-producer"), true), "it has no transactions");
        assertFalse(isInitialized(with("transaction.two.phase.commit.enable", true), true), "it may have a prepared transaction");
    }

    @Test
    void onlyKafkasOwnProducersOfStreamThreadsAreKnown() {
        try (KafkaProducer<byte[], byte[]> producer = producer(); OwnProducer own = new OwnProducer()) {
            warmUp.constructed(own, SETTINGS);
            warmUp.constructed(producer, with("client.id", "producer-1"));
            warmUp.constructed(producer, new Object());
            assertNull(warmUp.producerOf("app-StreamThread-1"));
            warmUp.constructed(producer, SETTINGS);
            assertTrue(warmUp.producerOf("app-StreamThread-1").isOf(producer));
            assertNull(warmUp.initializing(own));
            assertNull(warmUp.initializing(producer), "it was not allowed, so Kafka initializes it");
            assertNull(warmUp.producerOf("app-StreamThread-1"), "and the agent is done with it");
        }
    }

    @Test
    void whereNoBrokerAnswersKafkaTriesItself() {
        try (KafkaProducer<byte[], byte[]> producer = producer()) {
            warmUp.constructed(producer, SETTINGS);
            warmUp.allow(Map.of("client.id", "app-StreamThread-1-consumer"), true);
            ThreadProducer known = warmUp.producerOf("app-StreamThread-1");
            assertTrue(known.accepts(Set.of("app-counts-changelog")));
            assertFalse(known.accepts(Set.of("app-counts-changelog")), "once is enough");
            known.prepare(Set.of("app-counts-changelog"));
            assertFalse(known.initialization().isAllowed());
            assertFalse(known.initialization().hasFailed(), "the producer has no pending call, so Kafka's own does not wait for one");
            assertNull(warmUp.initializing(producer));
        }
    }

    @Test
    void anInitializedProducerStaysKnownIfAnotherHasItsClientId() throws ReflectiveOperationException {
        try (KafkaProducer<byte[], byte[]> first = producer(); KafkaProducer<byte[], byte[]> second = producer()) {
            warmUp.constructed(first, SETTINGS);
            warmUp.allow(Map.of("client.id", "app-StreamThread-1-consumer"), true);
            warmUp.producerOf("app-StreamThread-1").initialization().run(() -> { });
            warmUp.constructed(second, SETTINGS);
            warmUp.allow(Map.of("client.id", "app-StreamThread-1-consumer"), true);
            assertFalse(warmUp.producerOf("app-StreamThread-1").accepts(Set.of("app-counts-changelog")), "the copies may be the other application's");
            assertNull(warmUp.initializing(second));
            assertEquals(true, warmUp.initializing(first), "a second initialization would end the stream thread");
        }
    }

    @Test
    void whereTwoProducersHaveOneClientIdNeitherIsInitialized() {
        try (KafkaProducer<byte[], byte[]> first = producer(); KafkaProducer<byte[], byte[]> second = producer()) {
            warmUp.constructed(first, SETTINGS);
            warmUp.allow(Map.of("client.id", "app-StreamThread-1-consumer"), true);
            assertTrue(warmUp.producerOf("app-StreamThread-1").initialization().isAllowed());
            warmUp.constructed(second, SETTINGS);
            warmUp.allow(Map.of("client.id", "app-StreamThread-1-consumer"), true);
            assertFalse(warmUp.producerOf("app-StreamThread-1").initialization().isAllowed());
        }
    }

    @Test
    void classesAreLoadedAndNotInitialized() throws IOException {
        assertTrue(ClassWarmUp.link(WarmUpTest.class.getClassLoader(), "dev.streamapp.agent.warmup.WarmUpTest$Initialized"));
        assertNull(System.getProperty("initialized"));
        assertFalse(ClassWarmUp.link(WarmUpTest.class.getClassLoader(), "org.apache.kafka.Missing"));
        List<String> missing = ClassWarmUp.names().stream().filter(name -> !ClassWarmUp.link(WarmUpTest.class.getClassLoader(), name)).toList();
        assertTrue(missing.size() * 4 < ClassWarmUp.names().size(), "most of them are in the oldest release, too; not: " + missing);
    }
}
