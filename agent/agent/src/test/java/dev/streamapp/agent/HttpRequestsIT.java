package dev.streamapp.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Valid, invalid and hostile requests to the agent's port; the shipped jar, over TCP. */
class HttpRequestsIT {

    private static final String PROCESS = "00000000-0000-4000-8000-000000000001";
    @TempDir
    private static Path folder;
    private static AppJvm app;

    @BeforeAll
    static void start() throws IOException, InterruptedException {
        app = new AppJvm(AppJvm.Plan.withoutBroker(folder));
        app.instance();
    }

    @AfterAll
    static void end() throws IOException {
        app.close();
    }

    private static String announcement(long lease, long counter, String ids) {
        return "{\"epoch\": {\"lease\": " + lease + ", \"counter\": " + counter + "}, \"ttlSeconds\": 30, \"processIds\": [" + ids
                + "], \"rebalance\": \"Conservative\"}";
    }

    @Test
    void onlyTheTokenOpens() throws IOException, InterruptedException {
        for (String path : List.of("/streamapp/v1/report", "/streamapp/v1/leaving", "/", "/other")) {
            assertEquals(401, app.send(app.to(path).GET()).statusCode(), path);
            assertEquals(401, app.send(app.to(path).header("Authorization", "Bearer " + AppJvm.TOKEN + "x").GET()).statusCode(), path);
            assertEquals(401, app.send(app.to(path).header("Authorization", AppJvm.TOKEN).GET()).statusCode(), path);
        }
        assertEquals(404, app.send(app.authorized("/other").GET()).statusCode());
        assertEquals(405, app.send(app.authorized("/streamapp/v1/report").DELETE()).statusCode());
        assertEquals(405, app.send(app.authorized("/streamapp/v1/leaving").GET()).statusCode());
        assertEquals("not ready", app.send(app.to("/healthz").GET()).body());
    }

    @Test
    void theRefusalComesBeforeTheBody() throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), app.port)) {
            socket.setSoTimeout(4000);
            write(socket, "PUT /streamapp/v1/leaving HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
            assertTrue(firstLine(socket).contains(" 401 "));
        }
    }

    @Test
    void aHugeBodyIsRefusedUnread() throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), app.port)) {
            socket.setSoTimeout(4000);
            write(socket, "PUT /streamapp/v1/leaving HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + AppJvm.TOKEN
                    + "\r\nContent-Length: 1000000000\r\n\r\n");
            assertTrue(firstLine(socket).contains(" 413 "));
        }
    }

    @Test
    void aHugeBodyInChunksIsRefused() throws IOException, InterruptedException {
        byte[] body = new byte[300 * 1024];
        HttpResponse<String> response = app.send(app.authorized("/streamapp/v1/leaving")
                .PUT(BodyPublishers.ofInputStream(() -> new java.io.ByteArrayInputStream(body))));
        assertEquals(413, response.statusCode());
    }

    @Test
    void garbageIsSaidToBeGarbage() throws IOException, InterruptedException {
        for (String body : List.of("", "{", "[]", "null", "[".repeat(100_000), "{\"epoch\": 1}", announcement(-1, 0, ""), announcement(1, 1, "\"x\""), announcement(1, Long.MAX_VALUE, ""),
                                   announcement(1, 1, "\"" + PROCESS + "\", \"" + PROCESS + "\""))) {
            HttpResponse<String> response = app.announce(body);
            assertEquals(400, response.statusCode(), body.substring(0, Math.min(80, body.length())));
            assertTrue(response.body().startsWith("{\"error\":"), response.body());
        }
    }

    @Test
    void anAnnouncementIsTakenRenewedAndOutranked() throws IOException, InterruptedException {
        assertEquals("{\"epoch\":{\"lease\":7,\"counter\":2}}", app.announce(announcement(7, 2, "\"" + PROCESS + "\"")).body());
        assertEquals(200, app.announce(announcement(7, 2, "\"" + PROCESS + "\"")).statusCode());
        assertEquals(409, app.announce(announcement(7, 2, "")).statusCode());
        HttpResponse<String> old = app.announce(announcement(6, 9, ""));
        assertEquals(409, old.statusCode());
        assertTrue(old.body().contains("\"epoch\":{\"lease\":7,\"counter\":2}"), old.body());
        JsonObject state = app.report().getAsJsonObject("announcement");
        assertEquals("set", state.get("state").getAsString());
        assertEquals(PROCESS, state.getAsJsonArray("processIds").get(0).getAsString());
        assertEquals(200, app.announce(announcement(8, 0, "")).statusCode());
        assertEquals("empty", app.report().getAsJsonObject("announcement").get("state").getAsString());
    }

    @Test
    void slowAndManyClientsDelayOthersForSecondsAtMost() throws IOException, InterruptedException {
        List<Socket> sockets = new ArrayList<>();
        try {
            for (int i = 0; i < 150; i++) {
                Socket socket = new Socket(InetAddress.getLoopbackAddress(), app.port);
                sockets.add(socket);
                // A third says nothing, a third stops in its headers, a third in its body.
                write(socket, i % 3 == 0 ? "" : i % 3 == 1 ? "GET /streamapp/v1/report HT"
                        : "PUT /streamapp/v1/leaving HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + AppJvm.TOKEN + "\r\nContent-Length: 50\r\n\r\n{");
            }
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
            int served = 0;
            while (served < 3 && System.nanoTime() < end) {
                try {
                    served += app.send(app.authorized("/streamapp/v1/report").GET()).statusCode() == 200 ? 1 : 0;
                } catch (IOException e) {
                    // Dropped while the queue is full of the slow ones.
                    Thread.sleep(200);
                }
            }
            assertEquals(3, served);
            for (int i = 1; i < sockets.size(); i += 3) {
                sockets.get(i).setSoTimeout(15_000);
                assertEquals("", firstLine(sockets.get(i)), "the server hangs up on all that stopped in their headers");
            }
        } finally {
            for (Socket socket : sockets) {
                socket.close();
            }
        }
    }

    @Test
    void fewSlowClientsDelayNobody() throws IOException, InterruptedException {
        List<Socket> sockets = new ArrayList<>();
        try {
            for (int i = 0; i < 3; i++) {
                Socket socket = new Socket(InetAddress.getLoopbackAddress(), app.port);
                sockets.add(socket);
                write(socket, "GET /streamapp/v1/rep");
            }
            Thread.sleep(300);
            long before = System.nanoTime();
            assertEquals(200, app.send(app.authorized("/streamapp/v1/report").GET()).statusCode());
            assertTrue(System.nanoTime() - before < TimeUnit.SECONDS.toNanos(3));
            sockets.get(0).setSoTimeout(15_000);
            assertEquals("", firstLine(sockets.get(0)), "the server hangs up after its deadline");
        } finally {
            for (Socket socket : sockets) {
                socket.close();
            }
        }
    }

    private static void write(Socket socket, String text) throws IOException {
        OutputStream out = socket.getOutputStream();
        out.write(text.getBytes(StandardCharsets.ISO_8859_1));
        out.flush();
    }

    /** The first line of the answer; empty where the server hangs up without one. */
    private static String firstLine(Socket socket) throws IOException {
        StringBuilder line = new StringBuilder();
        try {
            for (int c = socket.getInputStream().read(); c >= 0 && c != '\r'; c = socket.getInputStream().read()) {
                line.append((char) c);
            }
        } catch (SocketException e) {
            return "";
        }
        return line.toString();
    }
}
