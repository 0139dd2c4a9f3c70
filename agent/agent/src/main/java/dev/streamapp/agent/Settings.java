package dev.streamapp.agent;

import dev.streamapp.agent.runtime.WarningLog;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeSet;

/**
 * The agent's settings, read from the environment.
 *
 * @param port the port of the HTTP server; empty if the variable is absent or no port
 * @param tokenHashes SHA-256 hashes of the accepted tokens, 32 bytes each; without one the server does not start
 * @param podUid the UID of the pod, for the report; empty if the variable is absent
 * @param tlsFolder the folder with {@code tls.crt} and {@code tls.key}; empty if the variable is absent: the server then speaks plain HTTP
 * @param defaults names out of {@code assignor}, {@code heartbeat}, {@code leave}
 */
record Settings(OptionalInt port, List<byte[]> tokenHashes, String podUid, Optional<Path> tlsFolder, Set<String> defaults) {

    static final Set<String> KNOWN_DEFAULTS = Set.of("assignor", "heartbeat", "leave");
    private static final int MAX_HASHES = 2;
    private static final int HASH_BYTES = 32;
    private static final int MAX_PORT = 65535;

    static Settings of(Map<String, String> environment) {
        return new Settings(
                port(environment.getOrDefault("STREAMAPP_AGENT_PORT", "").trim()),
                hashes(environment.getOrDefault("STREAMAPP_AGENT_TOKEN_SHA256", "")),
                environment.getOrDefault("STREAMAPP_AGENT_POD_UID", "").trim(),
                folder(environment.getOrDefault("STREAMAPP_AGENT_TLS_FOLDER", "").trim()),
                defaults(environment.getOrDefault("STREAMAPP_AGENT_DEFAULTS", "")));
    }

    private static Optional<Path> folder(String text) {
        return text.isEmpty() ? Optional.empty() : Optional.of(Path.of(text));
    }

    private static OptionalInt port(String text) {
        if (text.isEmpty()) {
            return OptionalInt.empty();
        }
        try {
            int port = Integer.parseInt(text);
            if (port > 0 && port <= MAX_PORT) {
                return OptionalInt.of(port);
            }
        } catch (NumberFormatException e) {
            // The warning below covers this case.
        }
        WarningLog.warn("STREAMAPP_AGENT_PORT is not a port, the server stays off: " + text);
        return OptionalInt.empty();
    }

    private static List<byte[]> hashes(String text) {
        List<byte[]> found = new ArrayList<>();
        for (String part : text.split(",")) {
            String hash = part.trim();
            if (hash.isEmpty() || found.size() == MAX_HASHES) {
                continue;
            }
            try {
                byte[] bytes = HexFormat.of().parseHex(hash);
                if (bytes.length == HASH_BYTES) {
                    found.add(bytes);
                    continue;
                }
            } catch (IllegalArgumentException e) {
                // The warning below leaves the text out: it may be the token itself.
            }
            WarningLog.warn("STREAMAPP_AGENT_TOKEN_SHA256 holds something that is not a SHA-256 in hex");
        }
        return List.copyOf(found);
    }

    private static Set<String> defaults(String text) {
        Set<String> found = new TreeSet<>();
        for (String part : text.split(",")) {
            String name = part.trim();
            if (KNOWN_DEFAULTS.contains(name)) {
                found.add(name);
            } else if (!name.isEmpty()) {
                WarningLog.warn("STREAMAPP_AGENT_DEFAULTS names an unknown default: " + name);
            }
        }
        return Set.copyOf(found);
    }
}
