package dev.streamapp.examples.counter.settings;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.streamapp.examples.counter.topology.Shape;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SettingsTest {
    private static final Map<String, Object> DEFAULTS = Map.of(
            "bootstrap.servers", "kafka:9092", "application.id", "counter", "state.dir", "/var/lib/streams");

    private static Settings read(String... namesAndValues) throws InvalidSettingException {
        Map<String, String> environment = new HashMap<>();
        environment.put("BOOTSTRAP_SERVERS", "kafka:9092");
        for (int i = 0; i < namesAndValues.length; i += 2) {
            environment.put(namesAndValues[i], namesAndValues[i + 1]);
        }
        return Settings.from(environment);
    }

    private static Map<String, Object> defaultsAnd(Map<String, Object> more) {
        Map<String, Object> all = new HashMap<>(DEFAULTS);
        all.putAll(more);
        return all;
    }

    @Test
    void onlyTheBrokersMustBeGiven() throws InvalidSettingException {
        assertEquals(
                new Settings(
                        Shape.COUNTER,
                        "counter-input",
                        "counter-table",
                        "counter-output",
                        false,
                        Duration.ofSeconds(30),
                        DEFAULTS,
                        List.of()),
                read());
    }

    @Test
    void everyVariableArrivesWhereItBelongs() throws InvalidSettingException {
        Settings settings = read(
                "BOOTSTRAP_SERVERS", "a:9092,b:9092",
                "APPLICATION_ID", "orders",
                "TOPOLOGY", "stores",
                "INPUT_TOPIC", "in",
                "TABLE_TOPIC", "rows",
                "OUTPUT_TOPIC", "out",
                "STATE_DIR", "/data",
                "EXACTLY_ONCE", "true",
                "STATIC_MEMBERSHIP", "true",
                "POD_NAME", "counter-2",
                "HOSTNAME", "ignored",
                "LEAVE_ON_CLOSE", "true",
                "CLOSE_TIMEOUT", "2m",
                "STREAMS_NUM_STANDBY_REPLICAS", "1");
        Map<String, Object> streams = Map.of(
                "bootstrap.servers", "a:9092,b:9092",
                "application.id", "orders",
                "state.dir", "/data",
                "processing.guarantee", "exactly_once_v2",
                "group.instance.id", "counter-2",
                "num.standby.replicas", "1");
        assertEquals(
                new Settings(Shape.STORES, "in", "rows", "out", true, Duration.ofMinutes(2), streams, List.of()),
                settings);
    }

    @Test
    void theTableIsRestoredFromItsTopic() throws InvalidSettingException {
        Settings settings = read("TOPOLOGY", "table");
        assertEquals(Shape.TABLE, settings.shape());
        assertEquals(defaultsAnd(Map.of("topology.optimization", "all")), settings.streams());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "TABLE_TOPIC | counter-input | TABLE_TOPIC: counter-input is also the INPUT_TOPIC; allowed: another topic",
                "TABLE_TOPIC | counter-output | TABLE_TOPIC: counter-output is also the OUTPUT_TOPIC; allowed: another topic",
                "STREAMS_TOPOLOGY_OPTIMIZATION | none | STREAMS_TOPOLOGY_OPTIMIZATION: topology.optimization has a variable of its own; allowed: TOPOLOGY alone",
            })
    void whatATableNeedsIsChecked(String variable, String value, String message) {
        InvalidSettingException exception = assertThrows(InvalidSettingException.class, () -> read("TOPOLOGY", "table", variable, value));
        assertEquals(message, exception.getMessage());
    }

    @Test
    void theTableTopicIsNobodysConcernWithoutATable() throws InvalidSettingException {
        assertEquals("counter-input", read("TABLE_TOPIC", "counter-input").tableTopic());
    }

    @ParameterizedTest
    @CsvSource({
        "STREAMS_NUM_STANDBY_REPLICAS, num.standby.replicas, 1",
        "STREAMS_HEARTBEAT_INTERVAL_MS, heartbeat.interval.ms, 500",
        "STREAMS_MAIN_CONSUMER_HEARTBEAT_INTERVAL_MS, main.consumer.heartbeat.interval.ms, 500",
        "STREAMS_PRODUCER_LINGER_MS, producer.linger.ms, 5",
        "STREAMS_LINGER_MS, linger.ms, 5",
        "STREAMS_PROCESSING_GUARANTEE, processing.guarantee, exactly_once_v2",
        "STREAMS_RACK_AWARE_ASSIGNMENT_NON_OVERLAP_COST, rack.aware.assignment.non_overlap_cost, 3",
        "STREAMS_TOPIC_MIN_INSYNC_REPLICAS, topic.min.insync.replicas, 2",
        "STREAMS_CLIENT_TAG_ZONE, client.tag.zone, a",
    })
    void aPropertyIsItsNameInUpperCaseWithUnderscores(String variable, String property, String value) throws InvalidSettingException {
        Settings settings = read(variable, value);
        assertEquals(defaultsAnd(Map.of(property, value)), settings.streams());
        assertEquals(List.of(), settings.warnings());
    }

    @Test
    void anUnknownPropertyIsPassedOnWithAWarning() throws InvalidSettingException {
        Settings settings = read("STREAMS_NUM_STANDBYS", "1");
        assertEquals(defaultsAnd(Map.of("num.standbys", "1")), settings.streams());
        assertEquals(
                List.of("STREAMS_NUM_STANDBYS: Kafka Streams has no property num.standbys; passed on as it is"),
                settings.warnings());
    }

    @Test
    void anEmptyVariableCountsAsNotSet() throws InvalidSettingException {
        assertEquals(read(), read("EXACTLY_ONCE", "", "APPLICATION_ID", " ", "TOPOLOGY", " ", "STREAMS_NUM_STREAM_THREADS", ""));
    }

    @Test
    void exactlyOnceSwitchedOffSaysAtLeastOnce() throws InvalidSettingException {
        assertEquals(
                defaultsAnd(Map.of("processing.guarantee", "at_least_once")),
                read("EXACTLY_ONCE", "false").streams());
    }

    @Test
    void withoutPodNameTheHostNameIsTheStaticMember() throws InvalidSettingException {
        Settings settings = read("STATIC_MEMBERSHIP", "true", "HOSTNAME", "laptop");
        assertEquals(defaultsAnd(Map.of("group.instance.id", "laptop")), settings.streams());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "BOOTSTRAP_SERVERS | '' | not set; allowed: host:port, several with commas between",
                "BOOTSTRAP_SERVERS | kafka | kafka is no list of brokers; allowed: host:port, several with commas between",
                "EXACTLY_ONCE | yes | yes is no truth value; allowed: true, false",
                "LEAVE_ON_CLOSE | 1 | 1 is no truth value; allowed: true, false",
                "STATIC_MEMBERSHIP | true | no name to join under; allowed: true only with POD_NAME or HOSTNAME set",
                "CLOSE_TIMEOUT | 30 | 30 is no duration; allowed: a whole number with a unit, for example 500ms, 30s, 10m or 2h",
                "INPUT_TOPIC | a b | a b is no name that Kafka accepts; allowed: up to 249 of a-z, A-Z, 0-9, '.', '_', '-'",
                "TOPOLOGY | Table | Table is no topology; allowed: counter, echo, stores, table",
                "TABLE_TOPIC | a b | a b is no name that Kafka accepts; allowed: up to 249 of a-z, A-Z, 0-9, '.', '_', '-'",
                "OUTPUT_TOPIC | counter-input | counter-input is also the INPUT_TOPIC; allowed: another topic",
                "STREAMS_NUM_STREAM_THREADS | two | two is no whole number; allowed: a whole number (int)",
                "STREAMS_MAX_WARMUP_REPLICAS | 0 | 0 is refused by Kafka; allowed: a whole number (int), [1,...]",
                "STREAMS_ENABLE_METRICS_PUSH | on | on is no truth value; allowed: true, false",
                "STREAMS_PROCESSING_GUARANTEE | once | once is refused by Kafka; allowed: text, [at_least_once, exactly_once_v2]",
                "STREAMS_APPLICATION_ID | a | application.id has a variable of its own; allowed: APPLICATION_ID alone",
            })
    void aWrongValueNamesTheVariableTheCauseAndWhatIsAllowed(String variable, String value, String rest) {
        InvalidSettingException exception = assertThrows(InvalidSettingException.class, () -> read(variable, value));
        assertEquals(variable + ": " + rest, exception.getMessage());
    }

    @Test
    void theGuaranteeCannotBeSetInTwoWays() {
        InvalidSettingException exception = assertThrows(
                InvalidSettingException.class, () -> read("EXACTLY_ONCE", "true", "STREAMS_PROCESSING_GUARANTEE", "at_least_once"));
        assertEquals(
                "STREAMS_PROCESSING_GUARANTEE: processing.guarantee has a variable of its own; allowed: EXACTLY_ONCE alone",
                exception.getMessage());
    }
}
