package dev.streamapp.agent.server;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsParameters;
import com.sun.net.httpserver.HttpsServer;
import dev.streamapp.agent.announcement.Announcement;
import dev.streamapp.agent.announcement.AnnouncementState;
import dev.streamapp.agent.config.Defaults;
import dev.streamapp.agent.heartbeat.CapRequest;
import dev.streamapp.agent.heartbeat.HeartbeatCap;
import dev.streamapp.agent.instance.Instances;
import dev.streamapp.agent.report.Health;
import dev.streamapp.agent.report.Probe;
import dev.streamapp.agent.report.Prober;
import dev.streamapp.agent.report.Report;
import dev.streamapp.agent.tls.ServerTls;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import javax.net.ssl.SSLContext;

/**
 * The HTTP side of the protocol.
 *
 * <p>Only this class names the module jdk.httpserver, so a runtime without it fails in one place.
 * Every request except the health check needs a token. The server checks the token before it reads the body.
 */
public final class ReportServer {

    private static final int MAX_BODY_BYTES = 256 * 1024;
    private static final int BACKLOG = 32;
    private final DeadlineExecutor executor = new DeadlineExecutor();
    private final Parts parts;
    private final Gson gson = new Gson();
    private final HttpServer server;

    /** The parts of the agent that answer requests. */
    public record Parts(TokenAuth tokenAuth, Prober prober, Report report, Instances instances, Health health, AnnouncementState announcementState,
                        HeartbeatCap heartbeatCap) { }

    private record Answer(int status, JsonObject body) {
        static Answer error(int status, String sentence) {
            JsonObject body = new JsonObject();
            body.addProperty("error", sentence);
            return new Answer(status, body);
        }
    }

    /**
     * Binds the port on every address of the pod and starts to answer. Throws if another process uses the port.
     *
     * @param tls what it serves HTTPS with; empty: it serves plain HTTP
     */
    public ReportServer(int port, Parts parts, Optional<SSLContext> tls) throws IOException {
        this.parts = parts;
        InetSocketAddress address = new InetSocketAddress(port);
        server = tls.isEmpty() ? HttpServer.create(address, BACKLOG) : secured(address, tls.get());
        server.setExecutor(executor);
        server.createContext("/", this::handle);
        server.start();
    }

    private static HttpServer secured(InetSocketAddress address, SSLContext context) throws IOException {
        HttpsServer server = HttpsServer.create(address, BACKLOG);
        server.setHttpsConfigurator(new HttpsConfigurator(context) {
            @Override
            public void configure(HttpsParameters parameters) {
                parameters.setSSLParameters(ServerTls.parameters(getSSLContext()));
            }
        });
        return server;
    }

    int port() {
        return server.getAddress().getPort();
    }

    private void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            if (exchange.getRequestURI().getPath().equals("/healthz") && exchange.getRequestMethod().equals("GET")) {
                executor.requestWasRead();
                boolean ready = isReady();
                send(exchange, ready ? 200 : 503, "text/plain", ready ? "ok" : "not ready");
                return;
            }
            Answer answer = answer(exchange);
            send(exchange, answer.status(), "application/json", gson.toJson(answer.body()));
        }
    }

    private boolean isReady() {
        try {
            return parts.health().isReady();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private Answer answer(HttpExchange exchange) throws IOException {
        if (!parts.tokenAuth().accepts(exchange.getRequestHeaders().getFirst("Authorization"))) {
            return Answer.error(401, "no valid token");
        }
        String path = exchange.getRequestURI().getPath();
        String method = exchange.getRequestMethod();
        return switch (path) {
            case "/streamapp/v1/report" -> method.equals("GET") ? report() : Answer.error(405, "only GET");
            case "/streamapp/v1/leaving" -> method.equals("PUT") ? leaving(exchange) : Answer.error(405, "only PUT");
            case "/streamapp/v1/heartbeat" -> method.equals("PUT") ? heartbeat(exchange) : Answer.error(405, "only PUT");
            case "/healthz" -> Answer.error(405, "only GET");
            default -> Answer.error(404, "no such resource");
        };
    }

    private Answer report() {
        long askedAt = System.nanoTime();
        executor.requestWasRead();
        try {
            Optional<Probe> probe = parts.prober().probe();
            return probe.map(known -> new Answer(200, parts.report().of(known, parts.instances().isComplete(), askedAt)))
                    .orElseGet(() -> Answer.error(503, "no look at the instances has ended yet"));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return Answer.error(503, "the request took too long");
        }
    }

    private Answer leaving(HttpExchange exchange) throws IOException {
        Optional<String> body = body(exchange);
        if (body.isEmpty()) {
            return Answer.error(413, "larger than 256 KiB");
        }
        Announcement announcement;
        try {
            announcement = Announcement.parse(body.get());
        } catch (IllegalArgumentException e) {
            return Answer.error(400, e.getMessage());
        }
        AnnouncementState.Verdict verdict = parts.announcementState().offer(announcement);
        Answer answer = switch (verdict) {
            case TAKEN -> new Answer(200, new JsonObject());
            case LOWER_EPOCH -> Answer.error(409, "a higher epoch is known");
            case OTHER_CONTENT -> Answer.error(409, "this epoch is known with other content");
        };
        Announcement.Epoch known = verdict == AnnouncementState.Verdict.TAKEN ? announcement.epoch() : parts.announcementState().highest();
        answer.body().add("epoch", known.json());
        return answer;
    }

    private Answer heartbeat(HttpExchange exchange) throws IOException {
        Optional<String> body = body(exchange);
        if (body.isEmpty()) {
            return Answer.error(413, "larger than 256 KiB");
        }
        try {
            parts.heartbeatCap().offer(CapRequest.parse(body.get()));
        } catch (IllegalArgumentException e) {
            return Answer.error(400, e.getMessage());
        }
        return new Answer(200, new JsonObject());
    }

    /** Returns the body, or empty if it is longer than allowed. */
    private Optional<String> body(HttpExchange exchange) throws IOException {
        if (Defaults.number(exchange.getRequestHeaders().getFirst("Content-Length"), 0) > MAX_BODY_BYTES) {
            return Optional.empty();
        }
        byte[] body = exchange.getRequestBody().readNBytes(MAX_BODY_BYTES + 1);
        executor.requestWasRead();
        return body.length > MAX_BODY_BYTES ? Optional.empty() : Optional.of(new String(body, StandardCharsets.UTF_8));
    }

    private static void send(HttpExchange exchange, int status, String type, String body) throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", type + "; charset=utf-8");
        // One request per connection: the server keeps no idle connection and reads no refused body to its end.
        exchange.getResponseHeaders().set("Connection", "close");
        exchange.sendResponseHeaders(status, exchange.getRequestMethod().equals("HEAD") ? -1 : bytes.length);
        if (!exchange.getRequestMethod().equals("HEAD")) {
            exchange.getResponseBody().write(bytes);
        }
    }
}
