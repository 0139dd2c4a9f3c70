package dev.streamapp.agent.report;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.OptionalLong;
import java.util.Set;
import java.util.stream.Stream;

/**
 * The memory of the container, as the kernel counts it: what it uses, and its limit. RocksDB allocates outside of the heap, so the JVM does not know it.
 *
 * <p>It never asks RocksDB or Kafka's {@code rocksdb} metrics: a store that a rebalance closes at that moment would end the process (KAFKA-10025).
 * It reports nothing where the kernel's files are missing or unreadable.
 */
final class ContainerMemory {

    /** Version 1 writes such a number where there is no limit. */
    private static final long NO_LIMIT = 1L << 60;
    private static final Layout SECOND = new Layout("", "memory.max", "memory.current", Set.of("active_file", "inactive_file", "slab_reclaimable"));
    private static final Layout FIRST = new Layout("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", Set.of("total_active_file", "total_inactive_file"));

    private final Path root;
    private final Path membership;

    /** The names of the files of one version of control groups. What {@code reclaimed} names, the kernel takes back before it kills. */
    private record Layout(String folder, String limit, String used, Set<String> reclaimed) { }

    ContainerMemory() {
        this(Path.of("/sys/fs/cgroup"), Path.of("/proc/self/cgroup"));
    }

    /**
     * Takes the places of the kernel's files.
     *
     * @param root where control groups are mounted
     * @param membership the file that names the groups of this process
     */
    ContainerMemory(Path root, Path membership) {
        this.root = root;
        this.membership = membership;
    }

    /** Adds {@code memory} if it is known. */
    void addTo(JsonObject report) {
        for (Layout layout : new Layout[] {SECOND, FIRST}) {
            JsonObject memory = read(layout);
            if (memory != null) {
                memory.addProperty("heapBytes", Runtime.getRuntime().totalMemory());
                report.add("memory", memory);
                return;
            }
        }
    }

    private JsonObject read(Layout layout) {
        try {
            Path folder = folder(layout);
            long used = Long.parseLong(text(folder, layout.used())) - reclaimed(folder, layout);
            JsonObject memory = new JsonObject();
            memory.addProperty("usedBytes", Math.max(0, used));
            OptionalLong limit = limit(text(folder, layout.limit()));
            if (limit.isPresent()) {
                memory.addProperty("limitBytes", limit.getAsLong());
            }
            return memory;
        } catch (IOException | UncheckedIOException | NumberFormatException | SecurityException e) {
            return null;
        }
    }

    /** Returns the folder of this process; in a container it mostly is the root itself, since the process sees no other group. */
    private Path folder(Layout layout) throws IOException {
        Path top = root.resolve(layout.folder());
        try (Stream<String> lines = Files.lines(membership)) {
            return lines.map(line -> line.split(":", 3))
                    .filter(parts -> parts.length == 3 && parts[1].equals(layout.folder()))
                    .map(parts -> top.resolve(parts[2].replaceFirst("^/+", "")))
                    .filter(path -> Files.isReadable(path.resolve(layout.used())))
                    .findFirst()
                    .orElse(top);
        }
    }

    private static long reclaimed(Path folder, Layout layout) throws IOException {
        try (Stream<String> lines = Files.lines(folder.resolve("memory.stat"))) {
            return lines.map(line -> line.split(" ", 2))
                    .filter(parts -> parts.length == 2 && layout.reclaimed().contains(parts[0]))
                    .mapToLong(parts -> Long.parseLong(parts[1].strip()))
                    .sum();
        }
    }

    private static OptionalLong limit(String text) {
        long limit = text.equals("max") ? NO_LIMIT : Long.parseLong(text);
        return limit >= NO_LIMIT ? OptionalLong.empty() : OptionalLong.of(limit);
    }

    private static String text(Path folder, String name) throws IOException {
        return Files.readString(folder.resolve(name)).strip();
    }
}
