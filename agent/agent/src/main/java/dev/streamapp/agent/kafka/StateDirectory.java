package dev.streamapp.agent.kafka;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The state directory of an instance: its size, that of each task in it, and the free space of its volume. Learners need space before they start.
 *
 * <p>It measures at most twice a minute, since it reads the size of every file.
 * It reports nothing if the directory is missing or holds too many files.
 */
public final class StateDirectory {

    private static final long INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(30);
    private static final int MAX_FILES = 100_000;
    private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");
    private static final Pattern TASK = Pattern.compile("\\d+_\\d+");

    private final Path directory;
    private long measuredAt;
    private Size size;

    private record Size(long taken, Map<String, Long> tasks, long free, String fileSystem) {}

    /** Takes the directory of one application below {@code state.dir}. It reads nothing yet. */
    public StateDirectory(Path directory) {
        this.directory = directory;
    }

    /** Returns the number of task directories with content, named topologies included; 0 if the directory is missing or unreadable. */
    public int tasks() {
        try (Stream<Path> entries = Files.walk(directory, 2)) {
            return (int) entries.filter(entry -> !entry.equals(directory) && TASK.matcher(entry.getFileName().toString()).matches() && holdsAnything(entry)).count();
        } catch (IOException | UncheckedIOException | SecurityException e) {
            return 0;
        }
    }

    private static boolean holdsAnything(Path taskDirectory) {
        try (Stream<Path> entries = Files.list(taskDirectory)) {
            return entries.findAny().isPresent();
        } catch (IOException | UncheckedIOException e) {
            return false;
        }
    }

    /**
     * Adds {@code stateBytes}, {@code freeBytes} and {@code fileSystem} if they are known.
     *
     * @return the bytes of each task that had a directory, by its ID: parts of {@code stateBytes}, measured with it
     */
    public synchronized Map<String, Long> addTo(JsonObject json) {
        long now = System.nanoTime();
        if (size == null || now - measuredAt >= INTERVAL_NANOS) {
            size = measured();
            measuredAt = now;
        }
        if (size == null) {
            return Map.of();
        }
        json.addProperty("stateBytes", size.taken());
        json.addProperty("freeBytes", size.free());
        if (size.fileSystem() != null) {
            json.addProperty("fileSystem", size.fileSystem());
        }
        return size.tasks();
    }

    /** Returns the kernel's boot ID and the device number, which only volumes of one disk on one node share; null without Linux. */
    private String fileSystem() {
        try {
            return Files.readString(BOOT_ID).strip() + ":" + Files.getAttribute(directory, "unix:dev");
        } catch (IOException | UnsupportedOperationException | IllegalArgumentException | SecurityException e) {
            return null;
        }
    }

    private Size measured() {
        if (!Files.isDirectory(directory)) {
            return null;
        }
        LongAdder files = new LongAdder();
        LongAdder bytes = new LongAdder();
        Map<String, Long> tasks = new HashMap<>();
        try {
            Files.walkFileTree(directory, new SimpleFileVisitor<>() {
                @Override
                public FileVisitResult preVisitDirectory(Path visited, BasicFileAttributes attributes) {
                    if (directory.equals(visited.getParent()) && TASK.matcher(visited.getFileName().toString()).matches()) {
                        tasks.put(visited.getFileName().toString(), 0L);
                    }
                    return FileVisitResult.CONTINUE;
                }

                @Override
                public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                    files.increment();
                    bytes.add(attributes.size());
                    tasks.computeIfPresent(directory.relativize(file).getName(0).toString(), (task, taken) -> taken + attributes.size());
                    return files.sum() > MAX_FILES ? FileVisitResult.TERMINATE : FileVisitResult.CONTINUE;
                }

                @Override
                public FileVisitResult visitFileFailed(Path file, IOException gone) {
                    // RocksDB replaces files during the walk.
                    return FileVisitResult.CONTINUE;
                }

                @Override
                public FileVisitResult postVisitDirectory(Path visited, IOException gone) {
                    return FileVisitResult.CONTINUE;
                }
            });
            return files.sum() > MAX_FILES ? null : new Size(bytes.sum(), Map.copyOf(tasks), Files.getFileStore(directory).getUsableSpace(), fileSystem());
        } catch (IOException | SecurityException e) {
            return null;
        }
    }
}
