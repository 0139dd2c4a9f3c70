package dev.streamapp.agent.instance;

import dev.streamapp.agent.kafka.KafkaApi;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Shortens the waits of Kafka Streams for records while tasks change their process.
 *
 * <p>A thread that waits for records in {@code poll} sees nothing else. A task with all of its state waits up to {@code poll.ms} three times: for
 * the state updater to let its standby go, for it to find nothing to restore, and for the stream thread to see that. So polls are short for two
 * seconds after every assignment and every new state of an active task, and only then.
 */
public final class PollWaits {

    static final Duration SHORT = Duration.ofMillis(10);
    private static final long LASTS_NANOS = TimeUnit.SECONDS.toNanos(2);
    private static final int MAX_CLIENTS = 100;
    private static final String SETTING = "poll.ms";
    private static final String ABSTRACT_CONFIG = "org.apache.kafka.common.config.AbstractConfig";
    private static final Pattern CONSUMER = Pattern.compile("-StreamThread-\\d+-consumer$");
    private final LongSupplier nanoTime;
    private final Map<String, Long> changedAt = new ConcurrentHashMap<>();
    private final Set<String> ownSettings = ConcurrentHashMap.newKeySet();

    public PollWaits(LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
    }

    /** Called with the settings of a main consumer, before its thread starts: an explicit {@code poll.ms} is kept. */
    public void configured(Object config, Map<?, ?> consumerConfigs) throws ReflectiveOperationException {
        Matcher consumer = CONSUMER.matcher(String.valueOf(consumerConfigs.get("client.id")));
        KafkaApi kafka = new KafkaApi(KafkaApi.loaderOf(config, ABSTRACT_CONFIG));
        boolean explicit = ((Map<?, ?>) kafka.call(ABSTRACT_CONFIG, "originals", config)).containsKey(SETTING);
        if (explicit && consumer.find() && ownSettings.size() < MAX_CLIENTS) {
            ownSettings.add(consumer.replaceFirst(""));
        }
    }

    /** Called by a thread of Kafka Streams that has got an assignment, or has changed the state of an active task. */
    public void changed() {
        changed(TaskTimes.clientOf(Thread.currentThread().getName()));
    }

    void changed(String client) {
        long now = nanoTime.getAsLong();
        changedAt.values().removeIf(at -> now - at > LASTS_NANOS);
        if (!client.isEmpty() && !ownSettings.contains(client) && changedAt.size() < MAX_CLIENTS) {
            changedAt.put(client, now);
        }
    }

    /**
     * Returns the time that the poll of the current thread waits instead, or null if it waits as long as it wants to.
     *
     * <p>Every poll of every consumer comes here; nearly always nothing has changed, and that costs one look into an empty map.
     */
    public Duration shortened(Duration asked) {
        return changedAt.isEmpty() ? null : shortened(TaskTimes.clientOf(Thread.currentThread().getName()), asked);
    }

    Duration shortened(String client, Duration asked) {
        Long at = changedAt.get(client);
        if (at == null || asked.compareTo(SHORT) <= 0) {
            return null;
        }
        if (nanoTime.getAsLong() - at > LASTS_NANOS) {
            changedAt.remove(client, at);
            return null;
        }
        return SHORT;
    }
}
