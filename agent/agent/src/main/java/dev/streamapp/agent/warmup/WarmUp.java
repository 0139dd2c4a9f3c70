package dev.streamapp.agent.warmup;

import dev.streamapp.agent.kafka.KafkaApi;
import dev.streamapp.agent.runtime.DaemonThreads;
import dev.streamapp.agent.runtime.WarningLog;
import java.util.Collection;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Prepares a stream thread that has copies alone for its first active task.
 *
 * <p>Within a move Kafka Streams would load the classes of active tasks, initialize the transactions of the thread's producer and learn where the
 * changelog is. Here a thread of the agent does so before, when the first copy has opened its store. The producer is asked by its public methods.
 * No record is sent and no transaction begins. The application's own code does not run.
 */
public final class WarmUp {

    private static final String TASK = "org.apache.kafka.streams.processor.internals.Task";
    private static final String PARTITION = "org.apache.kafka.common.TopicPartition";
    private static final Pattern CLIENT = Pattern.compile("^(.*-StreamThread-\\d+)-(?:producer|consumer)$");
    private static final int MAX_THREADS = 1_000;
    private static final int MAX_WAITING = 1_000;
    private final Map<String, ThreadProducer> byThread = new ConcurrentHashMap<>();
    private final ClassWarmUp classes = new ClassWarmUp();
    private final ThreadPoolExecutor worker;

    public WarmUp() {
        worker = new ThreadPoolExecutor(1, 1, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>(MAX_WAITING), task -> DaemonThreads.make("warm-up", task));
        worker.allowCoreThreadTimeOut(true);
    }

    /**
     * Called at the end of each constructor of KafkaProducer. It remembers the producers of stream threads.
     *
     * @param settings the first argument, which is a map in the public constructors
     */
    public void constructed(Object producer, Object settings) {
        if (!(settings instanceof Map<?, ?> map) || !ThreadProducer.isKafkas(producer)) {
            return;
        }
        String thread = threadOf(map.get("client.id"));
        byThread.values().removeIf(known -> known.isOf(null));
        if (!thread.isEmpty() && byThread.size() < MAX_THREADS) {
            byThread.compute(thread, (name, known) -> known == null || known.isOf(producer) ? new ThreadProducer(producer, map) : barred(known));
        }
    }

    /** Two applications of a JVM can have one client ID. The first producer stays known: if it is initialized, Kafka Streams must not do it again. */
    private static ThreadProducer barred(ThreadProducer known) {
        known.bar();
        return known;
    }

    /**
     * Called with the settings of a main consumer. The thread's producer is constructed before it.
     *
     * @param onDemand whether a task follows each copy in this application, so that transactions can be initialized
     */
    public void allow(Map<?, ?> consumerConfigs, boolean onDemand) {
        ThreadProducer producer = byThread.get(threadOf(consumerConfigs.get("client.id")));
        if (producer != null) {
            producer.allow(onDemand);
        }
    }

    /** Called by the thread that has just changed the state of a task: a copy is RUNNING when its store is open. */
    public void changed(Object task, Object state) throws ReflectiveOperationException {
        ThreadProducer producer = byThread.isEmpty() ? null : byThread.get(Thread.currentThread().getName());
        if (producer == null || !((Enum<?>) state).name().equals("RUNNING")) {
            return;
        }
        ClassLoader loader = task.getClass().getClassLoader();
        KafkaApi kafka = new KafkaApi(loader);
        if (Boolean.FALSE.equals(kafka.call(TASK, "isActive", task))) {
            Set<String> topics = new TreeSet<>();
            for (Object partition : (Collection<?>) kafka.call(TASK, "changelogPartitions", task)) {
                topics.add((String) kafka.call(PARTITION, "topic", partition));
            }
            copyRuns(producer, topics, loader);
        }
    }

    private void copyRuns(ThreadProducer producer, Set<String> topics, ClassLoader loader) {
        if (producer.accepts(topics)) {
            try {
                worker.execute(() -> {
                    classes.load(loader);
                    producer.prepare(topics);
                });
            } catch (RuntimeException | OutOfMemoryError e) {
                WarningLog.warn("a stream thread is not prepared for its tasks: " + e.getClass().getSimpleName());
            }
        }
    }

    /**
     * Called before KafkaProducer#initTransactions, whoever calls it. It waits for an initialization that runs, as long as the call itself would.
     *
     * @return true if the producer is initialized, and Kafka's method must not run; null if it must
     */
    public Object initializing(Object producer) {
        for (Map.Entry<String, ThreadProducer> entry : byThread.entrySet()) {
            Initialization initialization = entry.getValue().initialization();
            if (entry.getValue().isOf(producer) && !initialization.isCalling()) {
                boolean done = initialization.isDone();
                if (done || !initialization.hasFailed()) {
                    byThread.remove(entry.getKey(), entry.getValue());
                }
                return done ? Boolean.TRUE : null;
            }
        }
        return null;
    }

    /**
     * Called when KafkaProducer#initTransactions has failed, whoever called it.
     *
     * @return what the caller gets instead; null for what it has
     */
    public Throwable initializationFailed(Object producer, Throwable thrown) {
        for (Map.Entry<String, ThreadProducer> entry : byThread.entrySet()) {
            Initialization initialization = entry.getValue().initialization();
            if (entry.getValue().isOf(producer) && !initialization.isCalling()) {
                return initialization.reasonOf(thrown);
            }
        }
        return null;
    }

    /** Returns the producer of a stream thread, or null. */
    ThreadProducer producerOf(String thread) {
        return byThread.get(thread);
    }

    private static String threadOf(Object clientId) {
        Matcher client = CLIENT.matcher(String.valueOf(clientId));
        return client.matches() ? client.group(1) : "";
    }
}
