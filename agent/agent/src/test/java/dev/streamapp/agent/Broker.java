package dev.streamapp.agent;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A real broker in a JVM of its own, on loopback, with its data in a folder of the test's. */
final class Broker implements AutoCloseable {

    private final Process process;
    final String address;

    Broker(Path jars, Path folder, String... more) throws IOException, InterruptedException {
        int port = AppJvm.freePort();
        int controller = AppJvm.freePort();
        address = "127.0.0.1:" + port;
        Path settings = folder.resolve("server.properties");
        List<String> lines = new ArrayList<>(List.of(
                "process.roles=broker,controller", "node.id=1", "controller.quorum.bootstrap.servers=127.0.0.1:" + controller,
                "listeners=PLAINTEXT://" + address + ",CONTROLLER://127.0.0.1:" + controller, "advertised.listeners=PLAINTEXT://" + address,
                "inter.broker.listener.name=PLAINTEXT", "controller.listener.names=CONTROLLER", "log.dirs=" + folder.resolve("data"),
                "offsets.topic.replication.factor=1", "offsets.topic.num.partitions=4", "transaction.state.log.replication.factor=1",
                "transaction.state.log.min.isr=1", "share.coordinator.state.topic.replication.factor=1",
                "share.coordinator.state.topic.min.isr=1", "group.initial.rebalance.delay.ms=1000", "auto.create.topics.enable=false",
                "log.cleaner.dedupe.buffer.size=16777216"));
        lines.addAll(List.of(more));
        Files.write(settings, lines);
        String classPath = AppJvm.jarsOf(jars);
        Path log = folder.resolve("broker.log");
        int formatted = java(classPath, log, "kafka.tools.StorageTool", "format", "--standalone", "-t", "c3RyZWFtYXBwLWFnZW50LQ", "-c",
                             settings.toString()).waitFor();
        if (formatted != 0) {
            throw new IOException("the broker's folder was not formatted: " + Files.readString(log));
        }
        process = java(classPath, log, "kafka.Kafka", settings.toString());
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!answers(port)) {
            if (!process.isAlive() || System.nanoTime() > end) {
                process.destroyForcibly();
                throw new IOException("the broker did not start: " + Files.readString(log));
            }
            Thread.sleep(200);
        }
    }

    private static Process java(String classPath, Path log, String... command) throws IOException {
        List<String> line = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx384m", "-XX:+UseSerialGC",
                                                    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classPath));
        line.addAll(List.of(command));
        return new ProcessBuilder(line).redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile())).start();
    }

    private static boolean answers(int port) {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            return socket.isConnected();
        } catch (IOException e) {
            return false;
        }
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
