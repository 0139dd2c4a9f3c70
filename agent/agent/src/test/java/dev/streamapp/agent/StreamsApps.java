package dev.streamapp.agent;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.streamapp.agent.apps.Feeder;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;

/** A real broker that gives each task a standby, and applications of the streams group protocol in JVMs of their own. */
final class StreamsApps implements AutoCloseable {

    private static final Path KAFKA = Path.of(System.getProperty("kafka.versions"));
    final Broker broker;
    private final Path folder;

    StreamsApps(Path folder, int partitions) throws IOException, InterruptedException, ExecutionException {
        this.folder = folder;
        try (Stream<Path> parts = Files.list(KAFKA)) {
            broker = new Broker(parts.filter(path -> path.getFileName().toString().startsWith("kafka_")).findFirst().orElseThrow(), folder,
                                "group.streams.num.standby.replicas=1");
        }
        Feeder.main(new String[] {broker.address, String.valueOf(partitions), "0"});
    }

    /** The releases that are laid out and have the protocol, from its general availability on. */
    static Stream<String> versions() throws IOException {
        try (Stream<Path> parts = Files.list(KAFKA)) {
            List<String> found = parts.map(path -> path.getFileName().toString()).filter(name -> name.matches("kafka-streams-4\\.([2-9]|\\d\\d).*"))
                    .map(name -> name.substring("kafka-streams-".length())).sorted().toList();
            return found.stream();
        }
    }

    AppJvm start(String version, String group, String name, String defaults) throws IOException {
        AppJvm.Plan plan = new AppJvm.Plan().defaults(defaults).settings(
                "application.id=" + group, "bootstrap.servers=" + broker.address, "state.dir=" + folder.resolve(group + name),
                "group.protocol=streams", "commit.interval.ms=200", "statestore.cache.max.bytes=0", "producer.linger.ms=5",
                "topic.message.timestamp.type=LogAppendTime");
        String classes = Arrays.stream(plan.classPath.split(File.pathSeparator)).filter(entry -> entry.endsWith("test-classes")).findFirst().orElseThrow();
        plan.classPath = classes + File.pathSeparator + AppJvm.jarsOf(KAFKA.resolve("kafka-streams-" + version));
        AppJvm app = new AppJvm(plan);
        app.awaitLine("constructed");
        app.tell("start");
        return app;
    }

    static long count(JsonObject instance, String role, String state) {
        long found = 0;
        for (JsonElement element : instance.has("tasks") ? instance.getAsJsonArray("tasks") : new JsonArray()) {
            JsonObject task = element.getAsJsonObject();
            boolean isSo = state == null || task.has("state") && task.get("state").getAsString().equals(state);
            if (task.get("role").getAsString().equals(role) && isSo) {
                found++;
            }
        }
        return found;
    }

    @Override
    public void close() {
        broker.close();
    }
}
