package dev.streamapp.agent.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.streamapp.agent.assignor.AssignorInstaller;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** The decisions that need no Kafka; those about the assignor's place are made on real class loaders. */
class DefaultsTest {

    private static final Set<String> ALL = Set.of("assignor", "heartbeat", "leave");
    private final Map<String, Object> config = new HashMap<>();
    private final Map<String, Object> consumer = new HashMap<>();

    private String serverOff = "";

    private Defaults.Decision decide(Set<String> enabled) {
        return new Defaults(enabled, new AssignorInstaller(null), () -> serverOff).decide(config, consumer, 45_000, getClass().getClassLoader());
    }

    private List<String> limitations(Set<String> enabled) {
        return decide(enabled).limitations().stream().map(limitation -> limitation.what() + " " + limitation.kind()).toList();
    }

    @Test
    void nothingIsGivenUnasked() {
        assertEquals(Map.of(), decide(Set.of()).given());
        assertEquals(List.of("assignor SwitchedOff", "heartbeat SwitchedOff"), limitations(Set.of()));
    }

    @Test
    void anOlderReleaseHasNoSuchSetting() {
        assertEquals(Map.of("heartbeat.interval.ms", 500), decide(ALL).given());
        assertEquals(List.of("assignor OlderStreams"), limitations(ALL));
    }

    @Test
    void theStreamsProtocolLeavesNothingToSet() {
        config.put("group.protocol", "STREAMS");
        config.put("task.assignor.class", null);
        assertEquals(Map.of(), decide(ALL).given());
        assertEquals(List.of("assignor StreamsProtocol", "heartbeat StreamsProtocol"), limitations(ALL));
    }

    @Test
    void theUsersOwnSettingsStay() {
        config.put("task.assignor.class", null);
        consumer.put("internal.task.assignor.class", "x.Y");
        consumer.put("heartbeat.interval.ms", "3000");
        assertEquals(Map.of(), decide(ALL).given());
        assertEquals(List.of("assignor OwnAssignor"), limitations(ALL));
    }

    @Test
    void aShortSessionLeavesNoRoomForTheHeartbeat() {
        consumer.put("session.timeout.ms", "1499");
        assertEquals(Map.of(), decide(ALL).given());
        consumer.put("session.timeout.ms", 1500);
        assertEquals(Map.of("heartbeat.interval.ms", 500), decide(ALL).given());
    }

    @Test
    void oursSetByTheUserIsNeitherGivenNorPutAside() {
        config.put("task.assignor.class", AssignorInstaller.NAME);
        consumer.put("task.assignor.class", AssignorInstaller.NAME);
        assertEquals(List.of("heartbeat SwitchedOff"), limitations(Set.of("assignor")));
        assertEquals(Map.of(), decide(Set.of("assignor")).given());
    }

    @Test
    void nothingIsGivenWhereTheServerIsOff() {
        config.put("task.assignor.class", null);
        serverOff = "the server stays off, port 1";
        assertEquals(Map.of(), decide(ALL).given());
        assertEquals(List.of("assignor Failed", "heartbeat Failed"), limitations(ALL));
        assertEquals(serverOff, decide(ALL).limitations().get(0).why());
    }

    private Map<String, Object> restore(Set<String> enabled) {
        return new Defaults(enabled, new AssignorInstaller(null), () -> serverOff).decideRestore(config, consumer);
    }

    @Test
    void onlyWithExactlyOnceTheRestoreConsumersFetchesReturnSooner() {
        config.put("processing.guarantee", "at_least_once");
        assertEquals(Map.of(), restore(ALL));
        config.put("processing.guarantee", "exactly_once_v2");
        assertEquals(Map.of("fetch.max.wait.ms", 100), restore(ALL));
        assertEquals(Map.of(), restore(Set.of("assignor", "leave")));
    }

    @Test
    void theRestoreConsumerKeepsTheUsersValueAndIsLeftAloneWithoutAServer() {
        config.put("processing.guarantee", "exactly_once_v2");
        consumer.put("fetch.max.wait.ms", "250");
        assertEquals(Map.of(), restore(ALL));
        consumer.clear();
        serverOff = "no port is free";
        assertEquals(Map.of(), restore(ALL));
    }

    @Test
    void threadsArePreparedWhereTheAssignorIsOursAndTheServerListens() {
        assertTrue(new Defaults(Set.of("assignor"), new AssignorInstaller(null), () -> serverOff).wantsWarmUp());
        assertFalse(new Defaults(Set.of("heartbeat", "leave"), new AssignorInstaller(null), () -> serverOff).wantsWarmUp());
        serverOff = "no port is free";
        assertFalse(new Defaults(Set.of("assignor"), new AssignorInstaller(null), () -> serverOff).wantsWarmUp());
    }

    @Test
    void copiesComeOnDemandWhereThereAreNoStandbys() {
        assertTrue(Defaults.copiesComeOnDemand(Map.of("num.standby.replicas", 0)));
        assertFalse(Defaults.copiesComeOnDemand(Map.of("num.standby.replicas", 1)));
    }
}
