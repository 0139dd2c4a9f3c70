package dev.streamapp.agent;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * How long a task is silent when a process leaves and comes back, with the cap and without: two groups beside each other on one broker.
 *
 * <p>Each has three processes and one standby a task. It measures the longest time between two results of one partition, by the broker's clock.
 */
@Tag("heartbeats")
class HeartbeatBenchIT {

    private static final String VERSION = System.getProperty("bench.version", "4.2.1");
    private static final int CYCLES = Integer.getInteger("bench.cycles", 12);
    private static final int PARTITIONS = 6;
    private static final int PAUSE_MILLIS = 40;
    private static final int CAP_MILLIS = 300;
    private static final List<String> GROUPS = List.of("plain", "capped");
    private static final Duration PATIENCE = Duration.ofSeconds(90);
    @TempDir
    private static Path folder;
    private final Map<String, AppJvm[]> processes = new HashMap<>();
    private final Map<String, Map<Integer, List<Long>>> appended = new HashMap<>();
    private final AtomicBoolean ended = new AtomicBoolean();
    private StreamsApps apps;

    @Test
    void departuresAndReturns() throws IOException, InterruptedException, ExecutionException {
        Map<String, List<Double>> gaps = new java.util.TreeMap<>();
        List<Thread> threads = new ArrayList<>();
        try (StreamsApps all = new StreamsApps(folder, PARTITIONS)) {
            apps = all;
            threads.add(background(this::feed));
            for (String group : GROUPS) {
                processes.put(group, new AppJvm[3]);
                for (int i = 0; i < 3; i++) {
                    processes.get(group)[i] = apps.start(VERSION, group, "p" + i, "heartbeat");
                }
            }
            settle(3);
            for (String group : GROUPS) {
                Map<Integer, List<Long>> times = new ConcurrentHashMap<>();
                IntStream.range(0, PARTITIONS).forEach(i -> times.put(i, Collections.synchronizedList(new ArrayList<>())));
                appended.put(group, times);
                threads.add(background(() -> follow(group)));
            }
            Thread.sleep(3_000);
            System.out.println("heartbeats a second and process: " + rates());
            for (int cycle = 0; cycle < CYCLES; cycle++) {
                departures(gaps);
                returns(gaps);
                System.out.println("cycle " + cycle + ": " + gaps);
            }
        } finally {
            ended.set(true);
            for (Thread thread : threads) {
                thread.join();
            }
            for (AppJvm[] group : processes.values()) {
                for (AppJvm app : group) {
                    end(app);
                }
            }
        }
        Files.write(Path.of("target", "heartbeats.md"), table(gaps));
    }

    private void departures(Map<String, List<Double>> gaps) throws IOException, InterruptedException {
        long began = System.currentTimeMillis();
        cap("capped", 60);
        List<Thread> leaving = new ArrayList<>();
        for (String group : GROUPS) {
            AppJvm app = processes.get(group)[2];
            processes.get(group)[2] = null;
            leaving.add(background(() -> end(app)));
        }
        for (Thread thread : leaving) {
            thread.join();
        }
        note(gaps, "departure", began, 2);
    }

    private void returns(Map<String, List<Double>> gaps) throws IOException, InterruptedException {
        long began = System.currentTimeMillis();
        cap("capped", 60);
        for (String group : GROUPS) {
            processes.get(group)[2] = apps.start(VERSION, group, "p2", "heartbeat");
        }
        // As an operator does that looks once a second.
        processes.get("capped")[2].instance();
        Thread.sleep(1_000);
        cap("capped", 60);
        note(gaps, "return", began, 3);
    }

    private void note(Map<String, List<Double>> gaps, String what, long began, int running) throws IOException, InterruptedException {
        settle(running);
        cap("capped", 0);
        for (String group : GROUPS) {
            gaps.computeIfAbsent(what + " " + group, none -> new ArrayList<>()).add(longest(group, began));
        }
        Thread.sleep(1_000 + (long) (Math.random() * 5_000));   // Somewhere between two heartbeats.
    }

    private void cap(String group, int ttlSeconds) throws IOException, InterruptedException {
        for (AppJvm app : processes.get(group)) {
            if (app != null) {
                app.cap(CAP_MILLIS, ttlSeconds);
            }
        }
    }

    /** Waits until every task runs and has its standby, in both groups, for three seconds. */
    private void settle(int running) throws IOException, InterruptedException {
        long end = System.nanoTime() + PATIENCE.toNanos();
        for (int good = 0; good < 6; good = isSettled(running) ? good + 1 : 0) {
            if (System.nanoTime() > end) {
                throw new AssertionError("the groups do not settle");
            }
            Thread.sleep(500);
        }
    }

    private boolean isSettled(int running) throws IOException, InterruptedException {
        for (AppJvm[] group : processes.values()) {
            long actives = 0;
            long standbys = 0;
            for (AppJvm app : group) {
                if (app != null) {
                    JsonObject instance = app.instance();
                    long own = StreamsApps.count(instance, "active", "running");
                    if (own == 0 || own != StreamsApps.count(instance, "active", null)) {
                        return false;
                    }
                    actives += own;
                    standbys += StreamsApps.count(instance, "standby", null);
                }
            }
            if (actives != PARTITIONS || standbys != PARTITIONS || Arrays.stream(group).filter(app -> app != null).count() != running) {
                return false;
            }
        }
        return true;
    }

    private double longest(String group, long began) {
        long longest = 0;
        for (List<Long> times : appended.get(group).values()) {
            synchronized (times) {
                List<Long> after = times.stream().filter(at -> at >= began - 1_000).toList();
                for (int i = 1; i < after.size(); i++) {
                    longest = Math.max(longest, after.get(i) - after.get(i - 1));
                }
            }
        }
        return longest / 1000.0;
    }

    private Map<String, Double> rates() throws IOException, InterruptedException {
        cap("capped", 60);
        Thread.sleep(1_000);
        Map<String, Double> rates = new java.util.TreeMap<>();
        Map<String, Long> before = new HashMap<>();
        for (String group : GROUPS) {
            before.put(group, processes.get(group)[0].heartbeats());
        }
        Thread.sleep(20_000);
        for (String group : GROUPS) {
            rates.put(group, (processes.get(group)[0].heartbeats() - before.get(group)) / 20.0);
        }
        cap("capped", 0);
        return rates;
    }

    private void feed() throws InterruptedException {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(Map.of("bootstrap.servers", apps.broker.address),
                                                                          new StringSerializer(), new StringSerializer())) {
            for (int i = 0; !ended.get(); i++) {
                for (int partition = 0; partition < PARTITIONS; partition++) {
                    producer.send(new ProducerRecord<>("input", partition, "key-" + i % 500, "value"));
                }
                Thread.sleep(PAUSE_MILLIS);
            }
        }
    }

    private void follow(String group) {
        Map<String, Object> settings = Map.of("bootstrap.servers", apps.broker.address, "fetch.max.wait.ms", 50);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = IntStream.range(0, PARTITIONS)
                    .mapToObj(i -> new TopicPartition(group + "-counts-changelog", i)).toList();
            consumer.assign(partitions);
            consumer.seekToEnd(partitions);
            while (!ended.get()) {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> appended.get(group).get(record.partition()).add(record.timestamp()));
            }
        }
    }

    private static List<String> table(Map<String, List<Double>> gaps) {
        List<String> lines = new ArrayList<>(List.of("| Event | Median | Longest | All runs |", "| --- | --- | --- | --- |"));
        gaps.forEach((what, all) -> {
            List<Double> sorted = all.stream().sorted().toList();
            double median = (sorted.get((sorted.size() - 1) / 2) + sorted.get(sorted.size() / 2)) / 2;
            lines.add("| %s | %.2f s | %.2f s | %s |".formatted(what, median, sorted.get(sorted.size() - 1),
                                                              String.join(", ", all.stream().map("%.2f"::formatted).toList())));
        });
        return lines;
    }

    private static void end(AppJvm app) throws IOException {
        if (app != null) {
            app.close();
        }
    }

    /** Work that may fail: its thread then ends with the exception's text on the output. */
    private interface Work {
        void run() throws IOException, InterruptedException;
    }

    private static Thread background(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (IOException | InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        thread.start();
        return thread;
    }
}
