package dev.streamapp.examples.counter.load;

import dev.streamapp.examples.counter.load.clients.Connection;
import dev.streamapp.examples.counter.load.records.LoadException;
import dev.streamapp.examples.counter.load.records.Waits;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.TimestampType;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/**
 * Measures how long inputs wait for their outputs, by the broker's append times; one line of JSON a second.
 *
 * <p>It joins no group: it reads both topics from their begin.
 */
@Command(
        name = "waits",
        description = "Print every second how long inputs waited for outputs, by the broker's append times.",
        mixinStandardHelpOptions = true)
public final class WaitsCommand implements Callable<Integer> {
    private static final Pattern OUTPUT = Pattern.compile("\\{\"partition\":(\\d+),\"offset\":(\\d+),");
    private static final Duration POLL = Duration.ofMillis(100);
    private static final Duration BETWEEN_LINES = Duration.ofSeconds(1);

    @Mixin
    private Connection connection;

    @Mixin
    private TopicOptions topics;

    @Spec
    private CommandSpec spec;

    private final Map<Integer, Waits> waits = new HashMap<>();
    private long clockMs;

    @Override
    public Integer call() throws LoadException, InterruptedException {
        try (StopSignal signal = StopSignal.listen();
                Consumer<byte[], byte[]> consumer = connection.consumer()) {
            consumer.assign(partitions(consumer));
            consumer.seekToBeginning(consumer.assignment());
            long next = System.nanoTime();
            while (!signal.cameWithin(0)) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                    take(record);
                }
                if (System.nanoTime() - next >= 0) {
                    print(spec.commandLine().getOut());
                    next += BETWEEN_LINES.toNanos();
                }
            }
            signal.finished();
            return 0;
        } catch (KafkaException e) {
            throw new LoadException("topics " + topics.input + " and " + topics.output + " cannot be read", e);
        }
    }

    private Collection<TopicPartition> partitions(Consumer<byte[], byte[]> consumer) {
        List<TopicPartition> all = new ArrayList<>();
        for (String topic : List.of(topics.input, topics.output)) {
            consumer.partitionsFor(topic).forEach(one -> all.add(new TopicPartition(topic, one.partition())));
        }
        return all;
    }

    private void take(ConsumerRecord<byte[], byte[]> record) throws LoadException {
        if (record.timestampType() != TimestampType.LOG_APPEND_TIME) {
            throw new LoadException("topic " + record.topic() + " does not keep the broker's time; set its"
                    + " message.timestamp.type to LogAppendTime");
        }
        if (record.topic().equals(topics.input)) {
            clockMs = Math.max(clockMs, record.timestamp());
            of(record.partition()).input(record.offset(), record.timestamp());
            return;
        }
        Matcher place = OUTPUT.matcher(new String(record.value(), StandardCharsets.UTF_8));
        if (!place.lookingAt()) {
            throw new LoadException("topic " + topics.output + " holds another output than the counter's");
        }
        of(Integer.parseInt(place.group(1))).output(Long.parseLong(place.group(2)), record.timestamp());
    }

    private Waits of(int partition) {
        return waits.computeIfAbsent(partition, ignored -> new Waits());
    }

    private void print(PrintWriter out) {
        long ended = 0;
        long open = 0;
        long answered = 0;
        long passed = 0;
        for (Waits one : waits.values()) {
            ended = Math.max(ended, one.takeLongestMs());
            open = Math.max(open, one.openMs(clockMs));
            answered += one.answered();
            passed += one.passed();
        }
        out.println("{\"clockMs\":" + clockMs + ",\"endedMs\":" + ended + ",\"openMs\":" + open + ",\"answered\":"
                + answered + ",\"passed\":" + passed + "}");
        out.flush();
    }
}
