package dev.streamapp.agent;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.networknt.schema.JsonSchema;
import com.networknt.schema.JsonSchemaFactory;
import com.networknt.schema.SpecVersion;
import com.networknt.schema.ValidationMessage;
import dev.streamapp.agent.server.TokenAuth;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.BindException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/** A JVM with the agent as it is shipped, running one of the tests' applications; everything on loopback. Closing it ends the JVM. */
final class AppJvm implements AutoCloseable {
    private static final int FIRST_PORT = 12_000;
    private static final int PORTS = 20_000;
    private static final AtomicInteger NEXT_PORT = new AtomicInteger((int) ProcessHandle.current().pid() * 97);
    static final String TOKEN = "0123456789abcdef";
    static final Path JAR = Path.of(System.getProperty("agent.jar"));
    private static final HttpClient CLIENT = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(5)).build();
    private final Process process;
    private final Path errors;
    private final BufferedReader said;
    private final PrintStream words;
    final int port;

    /** What to start; every list may be added to before {@link #start}. */
    static final class Plan {
        final List<String> options = new ArrayList<>(List.of("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                                                             "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"));
        final List<String> arguments = new ArrayList<>();
        final Map<String, String> environment = new TreeMap<>();
        String classPath = withoutOurs(System.getProperty("java.class.path"));
        String main = "dev.streamapp.agent.apps.CountingApp";
        boolean agent = true;

        /** The tests' applications and their libraries: what the agent brings must come by its jar alone. */
        private static String withoutOurs(String classPath) {
            return Arrays.stream(classPath.split(File.pathSeparator)).map(Path::of)
                    .filter(entry -> !entry.getFileName().toString().equals("classes") && !entry.getFileName().toString().startsWith("streamapp-"))
                    .map(Path::toString).collect(Collectors.joining(File.pathSeparator));
        }

        /** An application whose broker does not answer: enough for everything that an instance knows by itself. */
        static Plan withoutBroker(Path folder) {
            return new Plan().settings("application.id=counting", "bootstrap.servers=127.0.0.1:1", "state.dir=" + folder);
        }

        Plan settings(String... settings) {
            arguments.addAll(List.of(settings));
            return this;
        }

        Plan defaults(String names) {
            environment.put("STREAMAPP_AGENT_DEFAULTS", names);
            return this;
        }
    }

    AppJvm(Plan plan) throws IOException {
        port = freePort();
        errors = Files.createTempFile("agent-test", ".err");
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        if (plan.agent) {
            command.add("-javaagent:" + JAR);
        }
        command.addAll(plan.options);
        command.addAll(List.of("-cp", plan.classPath, plan.main));
        command.addAll(plan.arguments);
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(errors.toFile());
        builder.environment().keySet().removeIf(name -> name.startsWith("STREAMAPP_"));
        builder.environment().put("STREAMAPP_AGENT_PORT", String.valueOf(port));
        builder.environment().put("STREAMAPP_AGENT_TOKEN_SHA256", HexFormat.of().formatHex(TokenAuth.sha256(TOKEN)));
        builder.environment().put("STREAMAPP_AGENT_POD_UID", "uid-1");
        builder.environment().putAll(plan.environment);
        process = builder.start();
        said = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        words = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
    }

    /**
     * A port that nobody else is given: the system gives those of 32768 and above to whoever asks for any, also in the
     * seconds before the application binds its own. Then a stranger would answer in its place.
     */
    static int freePort() throws IOException {
        for (int number = 0; number < PORTS; number++) {
            int port = FIRST_PORT + Math.floorMod(NEXT_PORT.getAndIncrement(), PORTS);
            try (ServerSocket socket = new ServerSocket(port)) {
                return socket.getLocalPort();
            } catch (BindException e) {
                // It is in use: the next one may not be.
            }
        }
        throw new IOException("no port from " + FIRST_PORT + " on is free");
    }

    static String jarsOf(Path folder) throws IOException {
        try (var files = Files.list(folder)) {
            return String.join(File.pathSeparator, files.map(Path::toString).filter(name -> name.endsWith(".jar")).sorted().toList());
        }
    }

    /** The next line on the application's standard output, whatever it is. */
    String line() throws IOException {
        return said.readLine();
    }

    /** The next line on the application's standard output that starts so. */
    String awaitLine(String start) throws IOException {
        for (String line = said.readLine(); line != null; line = said.readLine()) {
            if (line.startsWith(start)) {
                return line;
            }
        }
        throw new IOException("the application ended without saying " + start + ": " + errors());
    }

    /** Says a word to the application and waits until it was done. */
    void tell(String word) throws IOException {
        words.println(word);
        awaitLine("done " + word);
    }

    /** Says a word and waits for the line that the application answers before it is done. */
    void tellAndHear(String word, String answer) throws IOException {
        words.println(word);
        String heard = awaitLine(word);
        if (!heard.equals(answer)) {
            throw new AssertionError(heard);
        }
        awaitLine("done " + word);
    }

    String errors() throws IOException {
        return Files.readString(errors);
    }

    HttpResponse<String> send(HttpRequest.Builder request) throws IOException, InterruptedException {
        return CLIENT.send(request.timeout(Duration.ofSeconds(10)).build(), BodyHandlers.ofString());
    }

    /** What a readiness probe gets. */
    int health() throws IOException, InterruptedException {
        return send(to("/healthz").GET()).statusCode();
    }

    HttpRequest.Builder to(String path) {
        return HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path));
    }

    HttpRequest.Builder authorized(String path) {
        return to(path).header("Authorization", "Bearer " + TOKEN);
    }

    HttpResponse<String> announce(String body) throws IOException, InterruptedException {
        return send(authorized("/streamapp/v1/leaving").PUT(BodyPublishers.ofString(body)));
    }

    /** Asks for a cap of the heartbeat interval. */
    HttpResponse<String> cap(int millis, int ttlSeconds) throws IOException, InterruptedException {
        String body = "{\"capMillis\": " + millis + ", \"ttlSeconds\": " + ttlSeconds + "}";
        return send(authorized("/streamapp/v1/heartbeat").PUT(BodyPublishers.ofString(body)));
    }

    /** The heartbeats that its consumers have sent. */
    long heartbeats() throws IOException {
        words.println("heartbeats");
        return Long.parseLong(awaitLine("heartbeats ").substring("heartbeats ".length()));
    }

    /** The report, checked against the contract's schema. */
    JsonObject report() throws IOException, InterruptedException {
        HttpResponse<String> response = send(authorized("/streamapp/v1/report").GET());
        if (response.statusCode() != 200) {
            throw new IOException("status " + response.statusCode() + ": " + response.body());
        }
        List<String> breaches = breaches(response.body());
        if (!breaches.isEmpty()) {
            throw new AssertionError("the report is not of its schema: " + breaches);
        }
        return JsonParser.parseString(response.body()).getAsJsonObject();
    }

    /** What in a report is not of the contract's schema. */
    static List<String> breaches(String report) throws IOException {
        String text = Files.readString(Path.of(System.getProperty("agent.protocol"), "report.schema.json"));
        JsonSchema schema = JsonSchemaFactory.getInstance(SpecVersion.VersionFlag.V202012).getSchema(text);
        return schema.validate(report, com.networknt.schema.InputFormat.JSON).stream().map(ValidationMessage::getMessage).toList();
    }

    /** Asks until the only instance is so, or the time is over; the server begins a moment after the application's first instance. */
    JsonObject awaitInstance(Duration patience, Predicate<JsonObject> wanted) throws IOException, InterruptedException {
        long end = System.nanoTime() + patience.toNanos();
        String last = "no answer";
        while (System.nanoTime() < end) {
            try {
                JsonObject report = report();
                last = report.toString();
                if (report.getAsJsonArray("instances").size() > 0) {
                    JsonObject instance = report.getAsJsonArray("instances").get(0).getAsJsonObject();
                    if (wanted.test(instance)) {
                        return instance;
                    }
                }
            } catch (IOException e) {
                last = e.toString();
            }
            Thread.sleep(100);
        }
        throw new AssertionError("not within " + patience + "; last: " + last + "; " + errors());
    }

    JsonObject instance() throws IOException, InterruptedException {
        return awaitInstance(Duration.ofSeconds(60), instance -> true);
    }

    boolean isAlive() {
        return process.isAlive();
    }

    long pid() {
        return process.pid();
    }

    @Override
    public void close() throws IOException {
        words.close();
        boolean ended = false;
        try {
            ended = process.waitFor(60, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        process.destroyForcibly();
        Files.deleteIfExists(errors);
        if (!ended) {
            throw new AssertionError("the agent, or something else, kept the JVM alive");
        }
    }
}
