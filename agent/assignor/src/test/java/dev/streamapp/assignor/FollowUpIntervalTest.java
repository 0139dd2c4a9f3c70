package dev.streamapp.assignor;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.streamapp.assignor.core.model.Announcement;
import dev.streamapp.assignor.core.model.AssignmentResult;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;

class FollowUpIntervalTest {

    private static long after(String application, Announcement announcement, AssignmentResult.Purpose purpose, long seconds) {
        AssignmentResult result = new AssignmentResult(Map.of(), List.of(), List.of(), Optional.of(new AssignmentResult.FollowUp(10_000, purpose)), "");
        return FollowUpInterval.applied(application, announcement, result, seconds * 1_000).followUp().orElseThrow().millis();
    }

    @Test
    void followUpsGrowRareWhileTheSameProcessesLeave() {
        Announcement leaving = Announcement.leaving(Set.of("p1"), 50_000);
        assertEquals(10_000, after("grows", leaving, AssignmentResult.Purpose.LEARNING, 0));
        assertEquals(10_000, after("grows", leaving, AssignmentResult.Purpose.LEARNING, 30));
        assertEquals(20_000, after("grows", leaving, AssignmentResult.Purpose.LEARNING, 60));
        assertEquals(60_000, after("grows", leaving, AssignmentResult.Purpose.LEARNING, 7_200));
        assertEquals(10_000, after("grows", leaving, AssignmentResult.Purpose.EXPIRY, 7_200));
        assertEquals(10_000, after("grows", Announcement.leaving(Set.of("p2"), 50_000), AssignmentResult.Purpose.LEARNING, 7_210));
    }

    @Test
    void withoutAnAnnouncementTheyStayAsTheyAre() {
        for (Announcement announcement : List.of(Announcement.empty(), Announcement.unknown())) {
            assertEquals(10_000, after("stays", announcement, AssignmentResult.Purpose.LEARNING, 0));
            assertEquals(10_000, after("stays", announcement, AssignmentResult.Purpose.LEARNING, 7_200));
        }
    }
}
