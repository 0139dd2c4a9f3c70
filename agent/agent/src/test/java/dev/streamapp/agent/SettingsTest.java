package dev.streamapp.agent;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.streamapp.agent.server.TokenAuth;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import org.junit.jupiter.api.Test;

class SettingsTest {

    private static final String HASH = HexFormat.of().formatHex(TokenAuth.sha256("one"));

    @Test
    void nothingIsSetWhereTheEnvironmentSaysNothing() {
        Settings settings = Settings.of(Map.of());
        assertEquals(OptionalInt.empty(), settings.port());
        assertEquals(List.of(), settings.tokenHashes());
        assertEquals("", settings.podUid());
        assertEquals(Optional.empty(), settings.tlsFolder());
        assertEquals(Set.of(), settings.defaults());
    }

    @Test
    void everyVariableIsRead() {
        Settings settings = Settings.of(Map.of("STREAMAPP_AGENT_PORT", "8182", "STREAMAPP_AGENT_TOKEN_SHA256", HASH + ", " + HASH.toUpperCase(),
                                               "STREAMAPP_AGENT_POD_UID", "u", "STREAMAPP_AGENT_DEFAULTS", "assignor, leave",
                                               "STREAMAPP_AGENT_TLS_FOLDER", "/tls"));
        assertEquals(OptionalInt.of(8182), settings.port());
        assertEquals(2, settings.tokenHashes().size());
        assertArrayEquals(TokenAuth.sha256("one"), settings.tokenHashes().get(1));
        assertEquals("u", settings.podUid());
        assertEquals(Optional.of(Path.of("/tls")), settings.tlsFolder());
        assertEquals(Set.of("assignor", "leave"), settings.defaults());
    }

    @Test
    void whatIsNoPortNoHashAndNoDefaultIsLeftOut() {
        Settings settings = Settings.of(Map.of("STREAMAPP_AGENT_PORT", "70000", "STREAMAPP_AGENT_TOKEN_SHA256", "abc,zz," + HASH,
                                               "STREAMAPP_AGENT_DEFAULTS", "everything,heartbeat"));
        assertEquals(OptionalInt.empty(), settings.port());
        assertEquals(1, settings.tokenHashes().size());
        assertEquals(Set.of("heartbeat"), settings.defaults());
    }
}
