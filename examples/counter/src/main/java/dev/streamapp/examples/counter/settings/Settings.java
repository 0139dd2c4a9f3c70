package dev.streamapp.examples.counter.settings;

import dev.streamapp.examples.counter.topology.Shape;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;

/**
 * The application's settings. They come from environment variables only.
 *
 * <p>An empty variable counts as unset. Reading the settings touches neither the disk nor a broker.
 *
 * @param shape the shape of the topology
 * @param inputTopic the topic whose records are counted
 * @param tableTopic the topic of the table; only {@link Shape#TABLE} reads it
 * @param outputTopic the topic that gets one record per input record
 * @param leaveOnClose whether the member leaves the group when the application stops
 * @param closeTimeout the longest time that closing may take
 * @param streams properties for Kafka Streams and its clients
 * @param warnings lines to show once
 */
public record Settings(
        Shape shape,
        String inputTopic,
        String tableTopic,
        String outputTopic,
        boolean leaveOnClose,
        Duration closeTimeout,
        Map<String, Object> streams,
        List<String> warnings) {

    private static final Pattern TOPIC_NAME = Pattern.compile("[a-zA-Z0-9._-]{1,249}");
    private static final Pattern BROKERS = Pattern.compile("[^,\\s]+:\\d{1,5}(,[^,\\s]+:\\d{1,5})*");

    /** Read the settings, or say which variable is wrong. */
    public static Settings from(Map<String, String> environment) throws InvalidSettingException {
        return new Reader(environment, KafkaProperties.from(environment)).read();
    }

    /** Build the topology of the shape with the topics that are set. */
    public Topology topology() {
        return shape.build(inputTopic, tableTopic, outputTopic);
    }

    /** Return the options of the close. Without LEAVE_ON_CLOSE Kafka Streams decides whether the member leaves. */
    public CloseOptions closeOptions() {
        CloseOptions options = CloseOptions.timeout(closeTimeout);
        return leaveOnClose
                ? options.withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP)
                : options;
    }

    private record Reader(Map<String, String> environment, KafkaProperties kafka) {
        Settings read() throws InvalidSettingException {
            own("BOOTSTRAP_SERVERS", StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers());
            own("APPLICATION_ID", StreamsConfig.APPLICATION_ID_CONFIG, kafkaName("APPLICATION_ID", "counter"));
            own("STATE_DIR", StreamsConfig.STATE_DIR_CONFIG, text("STATE_DIR", "/var/lib/streams"));
            if (isSet("EXACTLY_ONCE")) {
                String guarantee = truth("EXACTLY_ONCE") ? StreamsConfig.EXACTLY_ONCE_V2 : StreamsConfig.AT_LEAST_ONCE;
                own("EXACTLY_ONCE", StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
            }
            if (truth("STATIC_MEMBERSHIP")) {
                own("STATIC_MEMBERSHIP", ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, hostName());
            }
            Shape shape = shape();
            String input = kafkaName("INPUT_TOPIC", "counter-input");
            String table = kafkaName("TABLE_TOPIC", "counter-table");
            String output = kafkaName("OUTPUT_TOPIC", "counter-output");
            different("OUTPUT_TOPIC", output, "INPUT_TOPIC", input);
            if (shape == Shape.TABLE) {
                different("TABLE_TOPIC", table, "INPUT_TOPIC", input);
                different("TABLE_TOPIC", table, "OUTPUT_TOPIC", output);
                own("TOPOLOGY", StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
            }
            Duration closeTimeout = duration("CLOSE_TIMEOUT", "30s");
            return new Settings(
                    shape,
                    input,
                    table,
                    output,
                    truth("LEAVE_ON_CLOSE"),
                    closeTimeout,
                    Map.copyOf(kafka.values()),
                    List.copyOf(kafka.warnings()));
        }

        /** Set a property that has a variable of its own. A STREAMS_ variable for the same property is an error. */
        private void own(String variable, String property, String value) throws InvalidSettingException {
            String other = kafka.variables().get(property);
            if (other != null) {
                throw new InvalidSettingException(other, property + " has a variable of its own", variable + " alone");
            }
            kafka.values().put(property, value);
        }

        private Shape shape() throws InvalidSettingException {
            String value = text("TOPOLOGY", "");
            return Shape.parse(value)
                    .orElseThrow(() -> new InvalidSettingException("TOPOLOGY", value + " is no topology", Shape.ALLOWED));
        }

        private static void different(String variable, String topic, String other, String taken) throws InvalidSettingException {
            if (topic.equals(taken)) {
                throw new InvalidSettingException(variable, topic + " is also the " + other, "another topic");
            }
        }

        private boolean isSet(String variable) {
            return !text(variable, "").isEmpty();
        }

        private String text(String variable, String otherwise) {
            String value = environment.getOrDefault(variable, "").strip();
            return value.isEmpty() ? otherwise : value;
        }

        private String brokers() throws InvalidSettingException {
            String value = text("BOOTSTRAP_SERVERS", "");
            if (!BROKERS.matcher(value).matches()) {
                String cause = value.isEmpty() ? "not set" : value + " is no list of brokers";
                throw new InvalidSettingException("BOOTSTRAP_SERVERS", cause, "host:port, several with commas between");
            }
            return value;
        }

        private String kafkaName(String variable, String otherwise) throws InvalidSettingException {
            String value = text(variable, otherwise);
            if (!TOPIC_NAME.matcher(value).matches()) {
                throw new InvalidSettingException(
                        variable, value + " is no name that Kafka accepts", "up to 249 of a-z, A-Z, 0-9, '.', '_', '-'");
            }
            return value;
        }

        private boolean truth(String variable) throws InvalidSettingException {
            return switch (text(variable, "false")) {
                case "true" -> true;
                case "false" -> false;
                default -> throw new InvalidSettingException(variable, text(variable, "") + " is no truth value", "true, false");
            };
        }

        private Duration duration(String variable, String otherwise) throws InvalidSettingException {
            String value = text(variable, otherwise);
            return Durations.parse(value)
                    .orElseThrow(() -> new InvalidSettingException(variable, value + " is no duration", Durations.ALLOWED));
        }

        private String hostName() throws InvalidSettingException {
            String name = text("POD_NAME", text("HOSTNAME", ""));
            if (name.isEmpty()) {
                throw new InvalidSettingException(
                        "STATIC_MEMBERSHIP", "no name to join under", "true only with POD_NAME or HOSTNAME set");
            }
            return name;
        }
    }
}
