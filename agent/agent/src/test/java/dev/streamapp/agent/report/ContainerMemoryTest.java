package dev.streamapp.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ContainerMemoryTest {

    private static final String STAT = "anon 700\nactive_file 100\ninactive_file 150\nslab_reclaimable 50\nshmem 5\n";

    @Test
    void theContainerUsesWhatTheKernelCannotTakeBack(@TempDir Path folder) throws IOException {
        write(folder, "1000", "2000", STAT);
        JsonObject memory = said(folder, "0::/");
        assertEquals(700, memory.get("usedBytes").getAsLong());
        assertEquals(2000, memory.get("limitBytes").getAsLong());
        assertEquals(Runtime.getRuntime().totalMemory(), memory.get("heapBytes").getAsLong());
    }

    @Test
    void aContainerWithoutALimitHasNone(@TempDir Path folder) throws IOException {
        write(folder, "1000", "max", STAT);
        assertFalse(said(folder, "0::/").has("limitBytes"));
    }

    @Test
    void theGroupOfTheProcessCountsWhereItIsSeen(@TempDir Path folder) throws IOException {
        write(folder, "9000", "max", STAT);
        write(Files.createDirectories(folder.resolve("kubepods/pod1")), "1000", "1500", STAT);
        assertEquals(1500, said(folder, "0::/kubepods/pod1").get("limitBytes").getAsLong());
        assertEquals(8700, said(folder, "0::/../other").get("usedBytes").getAsLong());
    }

    @Test
    void theFirstVersionOfControlGroupsIsReadToo(@TempDir Path folder) throws IOException {
        Path memory = Files.createDirectories(folder.resolve("memory"));
        Files.writeString(memory.resolve("memory.usage_in_bytes"), "1000\n");
        Files.writeString(memory.resolve("memory.limit_in_bytes"), "9223372036854771712\n");
        Files.writeString(memory.resolve("memory.stat"), "total_active_file 100\ntotal_inactive_file 200\nactive_file 9\n");
        JsonObject said = said(folder, "7:memory:/");
        assertEquals(700, said.get("usedBytes").getAsLong());
        assertFalse(said.has("limitBytes"));
        Files.writeString(memory.resolve("memory.limit_in_bytes"), "4000\n");
        assertEquals(4000, said(folder, "7:memory:/").get("limitBytes").getAsLong());
    }

    @Test
    void nothingIsSaidOfFilesThatAreMissingOrUnreadable(@TempDir Path folder) throws IOException {
        JsonObject report = new JsonObject();
        new ContainerMemory(folder, folder.resolve("missing")).addTo(report);
        assertFalse(report.has("memory"));
        write(folder, "many", "2000", STAT);
        Path membership = Files.writeString(folder.resolve("cgroup"), "0::/");
        new ContainerMemory(folder, membership).addTo(report);
        assertFalse(report.has("memory"));
    }

    private static void write(Path folder, String used, String limit, String stat) throws IOException {
        Files.writeString(folder.resolve("memory.current"), used + "\n");
        Files.writeString(folder.resolve("memory.max"), limit + "\n");
        Files.writeString(folder.resolve("memory.stat"), stat);
    }

    private static JsonObject said(Path folder, String group) throws IOException {
        JsonObject report = new JsonObject();
        new ContainerMemory(folder, Files.writeString(folder.resolve("cgroup"), group + "\n")).addTo(report);
        return report.getAsJsonObject("memory");
    }
}
