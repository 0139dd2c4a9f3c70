package dev.streamapp.agent.server;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class TokenAuthTest {

    private final TokenAuth tokenAuth = new TokenAuth(List.of(TokenAuth.sha256("old"), TokenAuth.sha256("new")));

    @Test
    void eachOfTheTokensIsAdmittedAndNothingElse() {
        assertTrue(tokenAuth.accepts("Bearer old"));
        assertTrue(tokenAuth.accepts("Bearer new"));
        for (String wrong : new String[] {null, "", "Bearer", "Bearer ", "Bearer x", "Basic old", "old", "Bearer old new", "Bearer " + "o".repeat(9999)}) {
            assertFalse(tokenAuth.accepts(wrong), wrong);
        }
        assertFalse(new TokenAuth(List.of()).accepts("Bearer "));
    }
}
