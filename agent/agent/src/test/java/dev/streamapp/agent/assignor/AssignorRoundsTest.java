package dev.streamapp.agent.assignor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class AssignorRoundsTest {

    private final AtomicLong clock = new AtomicLong();
    private final AssignorRounds rounds = new AssignorRounds(clock::get);

    private static Map<String, Object> round(String application) {
        return new HashMap<>(Map.of("applicationId", application, "announcement", "set", "moved", 2, "learning", 1L, "fellBack", "",
                                    "epoch", Map.of("lease", 4L, "counter", 5L), "ready", 0, "followUpMillis", 1000, "followUpFor", "learning"));
    }

    @Test
    void aRoundGrowsOld() {
        rounds.record(round("a"));
        clock.addAndGet(TimeUnit.MILLISECONDS.toNanos(1234));
        assertEquals("{\"announcement\":\"set\",\"moved\":2,\"learning\":1,\"epoch\":{\"lease\":4,\"counter\":5},\"ready\":0,\"followUpMillis\":1000,"
                     + "\"followUpFor\":\"learning\",\"fellBack\":\"\",\"ageMillis\":1234}", rounds.last("a").toString());
        assertNull(rounds.last("b"));
    }

    @Test
    void aRoundTellsHowLongAProcessIsNotWarmYet() {
        Map<String, Object> round = round("a");
        round.put("warmInMillis", 7000L);
        rounds.record(round);
        assertEquals(7000, rounds.last("a").get("warmInMillis").getAsLong());
    }

    @Test
    void aRoundOfTheWrongFormIsRefusedAndTheLastOneStays() {
        rounds.record(round("a"));
        for (Map.Entry<String, Object> wrong : Map.of("moved", (Object) "2", "announcement", "what", "followUpFor", "fun", "learning", -1).entrySet()) {
            Map<String, Object> round = round("a");
            round.put(wrong.getKey(), wrong.getValue());
            assertThrows(IllegalArgumentException.class, () -> rounds.record(round), wrong.getKey());
        }
        assertEquals(2, rounds.last("a").get("moved").getAsInt());
    }

    @Test
    void onlySoManyApplicationsAreRemembered() {
        for (int i = 0; i < 1000; i++) {
            rounds.record(round("application-" + i));
        }
        assertNull(rounds.last("application-900"));
        assertEquals(2, rounds.last("application-999").get("moved").getAsInt());
    }
}
