package dev.streamapp.agent.server;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.List;

/** Checks the bearer token of a request. The time of a check does not depend on the token. */
public final class TokenAuth {

    private static final String SCHEME = "Bearer ";
    private static final int MAX_LENGTH = 1024;
    private final List<byte[]> hashes;

    public TokenAuth(List<byte[]> hashes) {
        this.hashes = hashes;
    }

    /** Returns whether the header {@code Authorization} has an accepted token; a missing header is null. */
    boolean accepts(String authorization) {
        if (authorization == null || !authorization.startsWith(SCHEME) || authorization.length() > MAX_LENGTH) {
            return false;
        }
        byte[] hash = sha256(authorization.substring(SCHEME.length()).trim());
        boolean accepted = false;
        for (byte[] known : hashes) {
            accepted |= MessageDigest.isEqual(known, hash);
        }
        return accepted;
    }

    public static byte[] sha256(String token) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(token.getBytes(StandardCharsets.UTF_8));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JVM has SHA-256", e);
        }
    }
}
