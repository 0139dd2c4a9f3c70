package dev.streamapp.agent.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.streamapp.agent.announcement.AnnouncementState;
import dev.streamapp.agent.assignor.AssignorRounds;
import dev.streamapp.agent.heartbeat.HeartbeatCap;
import dev.streamapp.agent.instance.Instances;
import dev.streamapp.agent.instance.TaskTimes;
import dev.streamapp.agent.report.Health;
import dev.streamapp.agent.report.Prober;
import dev.streamapp.agent.report.Report;
import dev.streamapp.agent.tls.Certificates;
import dev.streamapp.agent.tls.Certificates.Pair;
import dev.streamapp.agent.tls.ServerTls;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The server with a certificate: real handshakes on loopback. */
class HttpsTest {

    private static final String TOKEN = "token";
    private static final Duration PATIENCE = Duration.ofSeconds(20);
    @TempDir
    private static Path stores;
    private static Pair first;
    private static Pair second;
    @TempDir
    private Path volume;

    @BeforeAll
    static void make() throws IOException, InterruptedException, GeneralSecurityException {
        first = Certificates.make(stores, "first", "RSA");
        second = Certificates.make(stores, "second", "EC");
    }

    private ReportServer serve() throws IOException, GeneralSecurityException {
        AnnouncementState announcement = new AnnouncementState(System::nanoTime);
        HeartbeatCap cap = new HeartbeatCap(false, System::nanoTime);
        Instances instances = new Instances();
        Report report = new Report("uid", new Report.News(announcement, new AssignorRounds(System::nanoTime), new TaskTimes(System::nanoTime), cap));
        ReportServer.Parts parts = new ReportServer.Parts(new TokenAuth(List.of(TokenAuth.sha256(TOKEN))), new Prober(instances::current), report, instances,
                                                          new Health(instances::all, System::nanoTime), announcement, cap);
        return new ReportServer(0, parts, Optional.of(ServerTls.context(volume)));
    }

    private static HttpResponse<String> get(ReportServer server, SSLContext trust, String path, String protocol) throws IOException, InterruptedException {
        SSLParameters parameters = new SSLParameters();
        parameters.setProtocols(new String[] {protocol});
        HttpClient client = HttpClient.newBuilder().sslContext(trust).sslParameters(parameters).version(HttpClient.Version.HTTP_1_1).build();
        URI uri = URI.create("https://localhost:" + server.port() + path);
        return client.send(HttpRequest.newBuilder(uri).timeout(PATIENCE).header("Authorization", "Bearer " + TOKEN).build(),
                           HttpResponse.BodyHandlers.ofString());
    }

    private static String probe(ReportServer server, SSLContext trust) throws IOException, InterruptedException {
        return get(server, trust, "/healthz", "TLSv1.3").body();
    }

    private static boolean isTrusted(ReportServer server, Pair pair) throws IOException, InterruptedException, GeneralSecurityException {
        try {
            return probe(server, pair.trusting()).equals("not ready");
        } catch (SSLException e) {
            return false;
        }
    }

    private static void awaitTrust(ReportServer server, Pair pair) throws IOException, InterruptedException, GeneralSecurityException {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (!isTrusted(server, pair)) {
            assertTrue(System.nanoTime() < end, "the certificate is not presented");
            Thread.sleep(100);
        }
    }

    @Test
    void requestsAreAnsweredWithTls12And13AndNoOlder() throws IOException, InterruptedException, GeneralSecurityException {
        Certificates.mount(volume, "1", first.certificatePem(), first.keyPem());
        ReportServer server = serve();
        for (String protocol : List.of("TLSv1.2", "TLSv1.3")) {
            HttpResponse<String> answer = get(server, first.trusting(), "/other", protocol);
            assertEquals(404, answer.statusCode());
            assertEquals(protocol, answer.sslSession().orElseThrow().getProtocol());
        }
        assertEquals(List.of("TLSv1.3", "TLSv1.2"), List.of(ServerTls.parameters(first.trusting()).getProtocols()));
    }

    @Test
    void theCertificateOfTheMomentIsPresentedWithoutARestart() throws IOException, InterruptedException, GeneralSecurityException {
        Certificates.mount(volume, "1", first.certificatePem(), first.keyPem());
        ReportServer server = serve();
        assertTrue(isTrusted(server, first));
        assertFalse(isTrusted(server, second));
        Certificates.mount(volume, "2", second.certificatePem(), second.traditionalKeyPem());
        awaitTrust(server, second);
        assertFalse(isTrusted(server, first));
    }

    @Test
    void brokenFilesLeaveTheCertificateOfBefore() throws IOException, InterruptedException, GeneralSecurityException {
        Certificates.mount(volume, "1", first.certificatePem(), first.keyPem());
        ReportServer server = serve();
        Certificates.mount(volume, "2", second.certificatePem(), first.keyPem());
        Thread.sleep(1200);
        assertTrue(isTrusted(server, first));
        Files.delete(volume.resolve("..data"));
        Thread.sleep(1200);
        assertTrue(isTrusted(server, first));
        Certificates.mount(volume, "3", second.certificatePem(), second.keyPem());
        awaitTrust(server, second);
    }

    @Test
    void withoutFilesTheProbeIsAnsweredAndNobodyWhoLooksTrustsIt() throws IOException, InterruptedException, GeneralSecurityException {
        ReportServer server = serve();
        assertEquals("not ready", probe(server, Certificates.trustingAnything()));
        assertThrows(SSLException.class, () -> probe(server, first.trusting()));
        Certificates.mount(volume, "1", first.certificatePem(), first.keyPem());
        awaitTrust(server, first);
    }

    @Test
    void plainHttpGetsNoAnswer() throws IOException, GeneralSecurityException {
        Certificates.mount(volume, "1", first.certificatePem(), first.keyPem());
        String answer = answerTo(serve(), "GET /streamapp/v1/report HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + TOKEN + "\r\n\r\n");
        assertFalse(answer.contains("HTTP"), answer);
    }

    @Test
    void aClientThatBeginsAHandshakeAndStopsIsHungUpOn() throws IOException, GeneralSecurityException {
        Certificates.mount(volume, "1", first.certificatePem(), first.keyPem());
        // The head of a record that says it has 512 bytes.
        assertFalse(answerTo(serve(), "\u0016\u0003\u0001\u0002\u0000").contains("HTTP"));
    }

    /** What comes back until the server closes; it must do so within the deadline of a request. */
    private static String answerTo(ReportServer server, String sent) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            socket.setSoTimeout((int) PATIENCE.toMillis());
            socket.getOutputStream().write(sent.getBytes(StandardCharsets.ISO_8859_1));
            InputStream in = socket.getInputStream();
            return new String(in.readAllBytes(), StandardCharsets.ISO_8859_1);
        }
    }
}
