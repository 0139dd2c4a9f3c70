package dev.streamapp.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.streamapp.agent.apps.Feeder;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the agent costs, printed; paired starts, so that the machine's mood hits both alike. */
@Tag("bench")
class BenchIT {

    private static final int PAIRS = 10;
    private static final int TASKS = 100;
    private static final Duration STRETCH = Duration.ofSeconds(30);
    private static final Pattern COMMITTED = Pattern.compile("Total:.*committed=(\\d+)KB");
    @TempDir
    private Path folder;

    @Test
    void startsAndMemory() throws IOException, InterruptedException {
        List<Double> starts = new ArrayList<>();
        List<Double> memory = new ArrayList<>();
        for (int i = 0; i < PAIRS; i++) {
            double[] without = started(false, i);
            double[] with = started(true, i);
            starts.add(with[0] - without[0]);
            memory.add(with[1] - without[1]);
        }
        print("start-up added, ms, until KafkaStreams is constructed", starts);
        print("native memory committed added, KiB, after one report", memory);
    }

    /** Milliseconds until the instance is constructed, and committed KiB a while later. */
    private double[] started(boolean agent, int round) throws IOException, InterruptedException {
        AppJvm.Plan plan = AppJvm.Plan.withoutBroker(folder.resolve(agent + "-" + round)).defaults("assignor,heartbeat,leave");
        plan.options.add("-XX:NativeMemoryTracking=summary");
        plan.options.remove("-XX:TieredStopAtLevel=1");
        plan.agent = agent;
        long before = System.nanoTime();
        try (AppJvm app = new AppJvm(plan)) {
            app.awaitLine("constructed");
            double took = (System.nanoTime() - before) / 1e6;
            if (agent) {
                app.instance();
            }
            Thread.sleep(1000);
            return new double[] {took, committed(app.pid())};
        }
    }

    private static double committed(long pid) throws IOException {
        String jcmd = Path.of(System.getProperty("java.home"), "bin", "jcmd").toString();
        Process process = new ProcessBuilder(jcmd, String.valueOf(pid), "VM.native_memory", "summary").redirectErrorStream(true).start();
        Matcher matcher = COMMITTED.matcher(new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8));
        if (!matcher.find()) {
            throw new IOException("jcmd did not say what is committed");
        }
        return Double.parseDouble(matcher.group(1));
    }

    @Test
    void oneReportASecond() throws IOException, InterruptedException, ExecutionException {
        Path kafka = Path.of(System.getProperty("kafka.versions"));
        Path jars;
        try (Stream<Path> parts = Files.list(kafka)) {
            jars = parts.filter(path -> path.getFileName().toString().startsWith("kafka_")).findFirst().orElseThrow();
        }
        try (Broker broker = new Broker(jars, folder)) {
            Feeder.main(new String[] {broker.address, String.valueOf(TASKS), "10000"});
            try (AppJvm first = start(broker, "first")) {
                first.awaitInstance(Duration.ofSeconds(60), instance -> count(instance, "active") == TASKS);
                try (AppJvm second = start(broker, "second")) {
                    String nobody = "{\"epoch\": {\"lease\": 1, \"counter\": 1}, \"ttlSeconds\": 60, \"processIds\": [], \"rebalance\": \"Eager\"}";
                    second.instance();
                    assertEquals(200, first.announce(nobody).statusCode());
                    assertEquals(200, second.announce(nobody).statusCode());
                    second.awaitInstance(Duration.ofSeconds(90), instance -> count(instance, "standby") >= TASKS / 2);
                    Thread.sleep(10_000);
                    measure(first, "the first JVM");
                    measure(second, "the second JVM");
                }
            }
        }
    }

    private AppJvm start(Broker broker, String name) throws IOException {
        AppJvm.Plan plan = new AppJvm.Plan().defaults("assignor,heartbeat").settings(
                "application.id=bench", "bootstrap.servers=" + broker.address, "state.dir=" + folder.resolve(name), "num.standby.replicas=1");
        plan.options.remove("-XX:TieredStopAtLevel=1");
        plan.options.remove("-Xmx256m");
        AppJvm app = new AppJvm(plan);
        app.awaitLine("constructed");
        app.tell("start");
        return app;
    }

    private static int count(com.google.gson.JsonObject instance, String role) {
        int count = 0;
        for (var task : instance.getAsJsonArray("tasks")) {
            count += task.getAsJsonObject().get("role").getAsString().equals(role) ? 1 : 0;
        }
        return count;
    }

    private static void measure(AppJvm app, String what) throws IOException, InterruptedException {
        com.google.gson.JsonObject instance = app.instance();
        double idle = cores(app, false);
        double asked = cores(app, true);
        System.out.printf(Locale.ROOT, "%s (%d actives, %d standbys): %.2f %% of a core without reports, %.2f %% with one a second%n", what,
                          count(instance, "active"), count(instance, "standby"), 100 * idle, 100 * asked);
    }

    private static double cores(AppJvm app, boolean asked) throws IOException, InterruptedException {
        Duration before = cpu(app);
        long begun = System.nanoTime();
        while (System.nanoTime() - begun < STRETCH.toNanos()) {
            if (asked) {
                app.report();
            }
            Thread.sleep(1000);
        }
        return (double) cpu(app).minus(before).toNanos() / (System.nanoTime() - begun);
    }

    private static Duration cpu(AppJvm app) {
        return ProcessHandle.of(app.pid()).orElseThrow().info().totalCpuDuration().orElseThrow();
    }

    private static void print(String what, List<Double> values) {
        Collections.sort(values);
        System.out.printf(Locale.ROOT, "%s: median %.0f, from %.0f to %.0f, %d pairs%n", what,
                          (values.get((values.size() - 1) / 2) + values.get(values.size() / 2)) / 2, values.get(0), values.get(values.size() - 1), values.size());
    }
}
