package dev.streamapp.assignor.core;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.streamapp.assignor.core.model.Group;
import dev.streamapp.assignor.core.model.Process;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class ScenarioTest {

    static Stream<Scenario> scenarios() {
        return Scenario.all();
    }

    @ParameterizedTest
    @MethodSource("scenarios")
    void theAnswerIsTheExpectedOne(Scenario scenario) {
        assertEquals(scenario.expected(), Scenario.told(LearnerAssignment.assign(scenario.group())));
    }

    @ParameterizedTest
    @MethodSource("scenarios")
    void theOrderInWhichMembersAreToldDoesNotMatter(Scenario scenario) {
        Group group = scenario.group();
        List<Process> shuffled = new ArrayList<>(group.processes());
        Collections.shuffle(shuffled, new Random(7));
        Group other = new Group(shuffled, group.tasks(), group.lagsKnown(), group.announcement(), group.settings());
        assertEquals(scenario.expected(), Scenario.told(LearnerAssignment.assign(other)));
    }
}
