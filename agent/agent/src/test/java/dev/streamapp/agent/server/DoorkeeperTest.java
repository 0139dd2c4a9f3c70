package dev.streamapp.agent.server;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class DoorkeeperTest {

    private final Doorkeeper doorkeeper = new Doorkeeper(List.of(Doorkeeper.sha256("old"), Doorkeeper.sha256("new")));

    @Test
    void eachOfTheTokensIsAdmittedAndNothingElse() {
        assertTrue(doorkeeper.admits("Bearer old"));
        assertTrue(doorkeeper.admits("Bearer new"));
        for (String wrong : new String[] {null, "", "Bearer", "Bearer ", "Bearer x", "Basic old", "old", "Bearer old new", "Bearer " + "o".repeat(9999)}) {
            assertFalse(doorkeeper.admits(wrong), wrong);
        }
        assertFalse(new Doorkeeper(List.of()).admits("Bearer "));
    }
}
