package dev.streamapp.agent.warmup;

import dev.streamapp.agent.runtime.WarningLog;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;

/**
 * Loads and links the classes that Kafka Streams first needs when a copy becomes an active task.
 *
 * <p>A resource names them; a release that lacks one is as slow there as before. Nothing is initialized: static initializers of two threads could
 * wait for each other.
 */
final class ClassWarmUp {

    static final String RESOURCE = "active-task-classes.txt";
    private static final String PREFIX = "org.apache.kafka.";
    private final Map<ClassLoader, Boolean> done = new WeakHashMap<>();

    /** Loads them in Kafka Streams' class loader, once. It throws nothing. */
    void load(ClassLoader loader) {
        synchronized (done) {
            if (done.putIfAbsent(loader, true) != null) {
                return;
            }
        }
        try {
            names().forEach(name -> link(loader, name));
        } catch (IOException e) {
            WarningLog.warn("classes are not loaded in advance", e);
        }
    }

    /** Returns the full names. */
    static List<String> names() throws IOException {
        try (InputStream in = ClassWarmUp.class.getResourceAsStream(RESOURCE)) {
            if (in == null) {
                throw new IOException("the agent's jar has no " + RESOURCE);
            }
            BufferedReader reader = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8));
            return reader.lines().filter(line -> !line.startsWith("#")).map(line -> PREFIX + line).toList();
        }
    }

    /** Returns whether the class is there. The JVM links a class before it lists its constructors, and does not initialize it. */
    static boolean link(ClassLoader loader, String name) {
        try {
            return Class.forName(name, false, loader).getDeclaredConstructors() != null;
        } catch (ClassNotFoundException | LinkageError e) {
            return false;
        }
    }
}
