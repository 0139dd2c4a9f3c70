package dev.streamapp.agent.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StateDirectoryTest {

    @Test
    void everyFileCountsAndFreeIsWhatTheVolumeSays(@TempDir Path folder) throws IOException {
        Files.createDirectories(folder.resolve("0_1/rocksdb/counts"));
        Files.write(folder.resolve("0_1/rocksdb/counts/000012.sst"), new byte[70_000]);
        Files.write(folder.resolve("kafka-streams-process-metadata"), new byte[60]);
        JsonObject json = said(new StateDirectory(folder));
        assertEquals(70_060, json.get("stateBytes").getAsLong());
        long free = Files.getFileStore(folder).getUsableSpace();
        assertEquals(free, json.get("freeBytes").getAsLong(), free * 0.05);
    }

    @Test
    void eachTaskHasWhatItsOwnDirectoryTakes(@TempDir Path folder) throws IOException {
        Files.createDirectories(folder.resolve("0_1/rocksdb/counts"));
        Files.write(folder.resolve("0_1/rocksdb/counts/000012.sst"), new byte[90_000]);
        Files.write(folder.resolve("0_1/.checkpoint"), new byte[7]);
        Files.createDirectories(folder.resolve("1_12/rocksdb/0_1"));
        Files.write(folder.resolve("1_12/rocksdb/0_1/000013.sst"), new byte[1_000]);
        Files.createDirectories(folder.resolve("0_2"));
        Files.createDirectories(folder.resolve("global"));
        Files.write(folder.resolve("global/.checkpoint"), new byte[30]);
        Files.write(folder.resolve("0_3"), new byte[5]);
        JsonObject json = new JsonObject();
        assertEquals(Map.of("0_1", 90_007L, "1_12", 1_000L, "0_2", 0L), new StateDirectory(folder).addTo(json));
        assertEquals(91_042, json.get("stateBytes").getAsLong());
    }

    @Test
    void foldersOfOneDiskNameOneFileSystem(@TempDir Path folder) throws IOException {
        Path other = Path.of("/proc/self");
        String name = said(new StateDirectory(Files.createDirectory(folder.resolve("a")))).get("fileSystem").getAsString();
        assertEquals(name, said(new StateDirectory(Files.createDirectory(folder.resolve("b")))).get("fileSystem").getAsString());
        assertTrue(name.endsWith(":" + Files.getAttribute(folder, "unix:dev")), name);
        assertNotEquals(Files.getAttribute(other, "unix:dev"), Files.getAttribute(folder, "unix:dev"));
    }

    @Test
    void itIsNotReadAgainForEveryReport(@TempDir Path folder) throws IOException {
        StateDirectory state = new StateDirectory(folder);
        assertEquals(0, said(state).get("stateBytes").getAsLong());
        Files.write(folder.resolve("more"), new byte[500]);
        assertEquals(0, said(state).get("stateBytes").getAsLong());
    }

    @Test
    void whereNothingLiesNothingIsSaid(@TempDir Path folder) {
        StateDirectory missing = new StateDirectory(folder.resolve("missing"));
        assertFalse(said(missing).has("stateBytes"));
        assertEquals(Map.of(), missing.addTo(new JsonObject()));
    }

    private static JsonObject said(StateDirectory state) {
        JsonObject json = new JsonObject();
        state.addTo(json);
        return json;
    }
}
