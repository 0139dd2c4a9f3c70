package dev.streamapp.examples.counter.load.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ConnectionTest {
    @TempDir
    private Path folder;

    @Test
    void aFolderHasAFileForEachProperty() throws IOException {
        Files.createDirectory(folder.resolve("..2026"));
        Files.writeString(folder.resolve("security.protocol"), "SSL\n");
        assertEquals(Map.of("security.protocol", "SSL"), read(folder));
    }

    @Test
    void aFileHasThemAll() throws IOException {
        Path file = Files.writeString(folder.resolve("client.properties"), "security.protocol=SSL\nssl.key.password=x\n");
        assertEquals(Map.of("security.protocol", "SSL", "ssl.key.password", "x"), read(file));
    }

    private static Properties read(Path config) throws IOException {
        Properties properties = new Properties();
        Connection.read(config, properties);
        return properties;
    }
}
