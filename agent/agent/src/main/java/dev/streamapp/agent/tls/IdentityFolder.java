package dev.streamapp.agent.tls;

import dev.streamapp.agent.runtime.WarningLog;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.time.Instant;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * The certificate in a folder that the kubelet keeps up to date.
 *
 * <p>Each handshake asks for it, and at most one handshake in a second looks at the files. So a new certificate is used within a second, without a thread
 * of its own. Files that are missing or broken change nothing: the last certificate stays, or the stand-in serves until there is one.
 */
final class IdentityFolder {

    private static final long LOOK_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final String UNTIL = "; until then the operator sends this agent nothing";
    private final Path folder;
    private final LongSupplier nanoTime;
    private String loadedStamp = "";
    private long lookedAt;
    private Identity identity;
    private Identity standIn;

    IdentityFolder(Path folder, LongSupplier nanoTime) {
        this.folder = folder;
        this.nanoTime = nanoTime;
        this.lookedAt = nanoTime.getAsLong() - LOOK_NANOS;
    }

    /** Returns the certificate to present now. Throws if there is neither one nor a stand-in. */
    synchronized Identity current() throws GeneralSecurityException {
        long now = nanoTime.getAsLong();
        if (now - lookedAt >= LOOK_NANOS) {
            lookedAt = now;
            look();
        }
        if (identity != null) {
            return identity;
        }
        if (standIn == null) {
            standIn = StandIn.make();
        }
        return standIn;
    }

    private void look() {
        try {
            // The kubelet replaces the link `..data` at once, so both files are of one version there.
            Path version = Files.exists(folder.resolve("..data")) ? folder.resolve("..data").toRealPath() : folder;
            String stamp = version + stamp(version.resolve("tls.crt")) + stamp(version.resolve("tls.key"));
            if (stamp.equals(loadedStamp)) {
                return;
            }
            identity = Identity.of(Files.readAllBytes(version.resolve("tls.crt")), Files.readString(version.resolve("tls.key"), StandardCharsets.ISO_8859_1));
            loadedStamp = stamp;
            warnOfItsEnd();
        } catch (Identity.UnusableException e) {
            warn(e.getMessage());
        } catch (NoSuchFileException e) {
            warn(e.getFile() + " is missing: create the Secret that spec.agent.tls names, of type kubernetes.io/tls");
        } catch (IOException | RuntimeException e) {
            warn("the files in " + folder + " cannot be read (" + e + "); look at the pod's volume streamapp-agent-tls");
        }
    }

    private static String stamp(Path file) throws IOException {
        return " " + Files.getLastModifiedTime(file).toMillis() + " " + Files.size(file);
    }

    private void warn(String why) {
        WarningLog.warn("TLS: " + why + (identity == null ? UNTIL : "; the certificate of before stays in use"));
    }

    private void warnOfItsEnd() {
        Instant end = identity.chain()[0].getNotAfter().toInstant();
        if (end.isBefore(Instant.now())) {
            WarningLog.warn("TLS: the certificate in tls.crt ended at " + end + "; renew it" + UNTIL);
        }
    }
}
