package dev.streamapp.agent.warmup;

import dev.streamapp.agent.kafka.KafkaApi;
import dev.streamapp.agent.runtime.WarningLog;
import java.lang.ref.WeakReference;
import java.lang.reflect.InvocationTargetException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The producer of a stream thread, and how it is prepared while the thread has copies alone. */
final class ThreadProducer {

    private static final String CLASS = "org.apache.kafka.clients.producer.KafkaProducer";
    private static final int MAX_TOPICS = 100;
    private final WeakReference<Object> producer;
    private final boolean transactional;
    private final Initialization initialization = new Initialization();
    private final Set<String> topics = ConcurrentHashMap.newKeySet();
    private volatile boolean allowed;
    private volatile boolean barred;

    ThreadProducer(Object producer, Map<?, ?> settings) {
        this.producer = new WeakReference<>(producer);
        boolean twoPhase = Boolean.parseBoolean(String.valueOf(settings.get("transaction.two.phase.commit.enable")));
        this.transactional = settings.get("transactional.id") != null && !twoPhase;
    }

    /** Returns whether the object is Kafka's own producer: a subclass is the application's code. */
    static boolean isKafkas(Object producer) {
        return producer.getClass().getName().equals(CLASS);
    }

    boolean isOf(Object other) {
        return producer.get() == other;
    }

    Initialization initialization() {
        return initialization;
    }

    void allow(boolean onDemand) {
        if (!barred) {
            allowed = true;
            if (onDemand && transactional) {
                initialization.allow();
            }
        }
    }

    /** Prevents any preparation from now on: another producer has the same client ID, so which thread this one serves is not known. */
    void bar() {
        barred = true;
        allowed = false;
        initialization.leaveToKafka();
    }

    /** Returns whether one of these topics is new, so that {@link #prepare} has something to do. */
    boolean accepts(Set<String> others) {
        return allowed && topics.size() < MAX_TOPICS && topics.addAll(others);
    }

    /**
     * Asks where the topics are, then initializes transactions if that is allowed. The topics exist: the thread reads them. It throws nothing.
     *
     * <p>A producer cannot be initialized any more if it was refused a connection meanwhile. So a broker must have answered the first question.
     */
    void prepare(Set<String> others) {
        Object target = producer.get();
        if (target == null || !allowed) {
            return;
        }
        try {
            for (String topic : others) {
                call(target, "partitionsFor", topic);
            }
            initialization.run(() -> call(target, "initTransactions"));
        } catch (InvocationTargetException e) {
            // The broker does not answer, or the application closes. Kafka Streams makes the same calls, and reports what fails.
            initialization.leaveToKafka();
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            initialization.leaveToKafka();
            WarningLog.warn("a stream thread is not prepared for its tasks, Kafka Streams does it: " + KafkaApi.reason(e));
        }
    }

    private static void call(Object target, String method, String... topic) throws ReflectiveOperationException {
        Class<?>[] types = topic.length == 0 ? new Class<?>[0] : new Class<?>[] {String.class};
        target.getClass().getMethod(method, types).invoke(target, (Object[]) topic);
    }
}
