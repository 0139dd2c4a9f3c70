package dev.streamapp.agent.runtime;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Writes warnings of the agent to stderr, one line each.
 *
 * <p>It writes a warning once, and at most {@value #MAX_WARNINGS} of them in the life of a JVM.
 */
public final class WarningLog {

    private static final int MAX_WARNINGS = 50;
    private static final int MAX_LENGTH = 400;
    private static final Set<String> WARNED = ConcurrentHashMap.newKeySet();

    private WarningLog() {
    }

    public static void warn(String warning) {
        if (WARNED.size() < MAX_WARNINGS && WARNED.add(warning)) {
            System.err.println("streamapp-agent: " + oneLine(warning));
        }
    }

    public static void warn(String warning, Throwable cause) {
        warn(warning + ": " + cause);
    }

    private static String oneLine(String warning) {
        String line = warning.replaceAll("\\s+", " ");
        return line.length() <= MAX_LENGTH ? line : line.substring(0, MAX_LENGTH) + " …";
    }
}
