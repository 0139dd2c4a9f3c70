package dev.streamapp.agent;

import dev.streamapp.agent.report.Prober;
import dev.streamapp.agent.runtime.WarningLog;
import dev.streamapp.agent.server.ReportServer;
import dev.streamapp.agent.tls.ServerTls;
import java.io.IOException;
import java.lang.module.ModuleFinder;
import java.security.GeneralSecurityException;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;

/**
 * Starts the HTTP server once, on a thread of the agent, and tells whether it listens.
 *
 * <p>An agent whose server is off hears of no announcement. So no setting may depend on it: the defaults ask here first.
 */
final class ServerStart {

    /** A JVM with a tenth of a processor loads classes for seconds. */
    private static final long WAIT_SECONDS = 10;
    /** With TLS it loads some hundred classes more: seen to take more than ten seconds on a busy machine. */
    private static final long TLS_WAIT_SECONDS = 30;
    private final Settings settings;
    private final Prober prober;
    private final Supplier<ReportServer.Parts> parts;
    private final AtomicBoolean began = new AtomicBoolean();
    private final CompletableFuture<String> outcome = new CompletableFuture<>();

    ServerStart(Settings settings, Prober prober, Supplier<ReportServer.Parts> parts) {
        this.settings = settings;
        this.prober = prober;
        this.parts = parts;
    }

    /** Begins to start the server on the first call. It does not wait. */
    void begin() {
        if (!began.compareAndSet(false, true)) {
            return;
        }
        if (settings.port().isEmpty()) {
            outcome.complete("STREAMAPP_AGENT_PORT names no port");
        } else if (settings.tokenHashes().isEmpty()) {
            refuse("STREAMAPP_AGENT_TOKEN_SHA256 is empty, the server stays off");
        } else {
            listenSoon();
        }
    }

    /** Returns why the server is off, or an empty string. It waits ten seconds at most, with TLS 30; the first answer is final. */
    String whyOff() {
        begin();
        long seconds = settings.tlsFolder().isEmpty() ? WAIT_SECONDS : TLS_WAIT_SECONDS;
        try {
            outcome.completeOnTimeout("the server did not start within " + seconds + " s", seconds, TimeUnit.SECONDS);
        } catch (OutOfMemoryError e) {
            outcome.complete("the JVM has no thread left");
        }
        return outcome.join();
    }

    private void listenSoon() {
        try {
            prober.runLater(this::listen);
        } catch (RejectedExecutionException | OutOfMemoryError e) {
            refuse("the server stays off, the JVM has no thread left");
        }
    }

    private void listen() {
        try {
            new ReportServer(settings.port().getAsInt(), parts.get(), tls());
            outcome.complete("");
        } catch (IOException e) {
            refuse("the server stays off, port " + settings.port().getAsInt() + ": " + e);
        } catch (GeneralSecurityException e) {
            refuse("the server stays off, this Java runtime has no TLS: " + e);
        } catch (NoClassDefFoundError e) {
            refuse("the server stays off, the JVM has no module jdk.httpserver: " + missing());
        } catch (RuntimeException | Error e) {
            refuse("the server stays off: " + e);
        }
    }

    private Optional<SSLContext> tls() throws GeneralSecurityException {
        return settings.tlsFolder().isEmpty() ? Optional.empty() : Optional.of(ServerTls.context(settings.tlsFolder().get()));
    }

    private static String missing() {
        boolean isThere = ModuleFinder.ofSystem().find("jdk.httpserver").isPresent();
        return isThere ? "start the JVM with --add-modules jdk.httpserver" : "this Java runtime is made without it";
    }

    private void refuse(String why) {
        WarningLog.warn(why);
        outcome.complete(why);
    }
}
