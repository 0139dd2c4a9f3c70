package dev.streamapp.examples.counter.settings;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.streams.StreamsConfig;

/**
 * Turns {@code STREAMS_<NAME>} variables into the properties of Kafka Streams and of its clients.
 *
 * <p>A variable is a property's name in upper case with dots as underscores. Names and values are checked against
 * Kafka's own definitions, so that a slip is found here, under the variable's name, and not in a stack trace later.
 * Properties that Kafka does not define are passed on with a warning: interceptors and reporters may know them.
 *
 * @param values property name to value, as text
 * @param variables property name to the variable that set it
 * @param warnings one line each, for properties that Kafka does not define
 */
record KafkaProperties(Map<String, Object> values, Map<String, String> variables, List<String> warnings) {
    static final String VARIABLE_PREFIX = "STREAMS_";

    /** Prefixes after which Kafka Streams takes any name, in the order in which they are tried. */
    private static final List<String> OPEN_PREFIXES = List.of("topic.", StreamsConfig.CLIENT_TAG_PREFIX);

    private static final Map<String, Property> KNOWN = known();

    /** A property of Kafka: the name as Kafka spells it, and its definition. */
    private record Property(String name, ConfigDef.ConfigKey definition) {}

    static KafkaProperties from(Map<String, String> environment) throws InvalidSettingException {
        KafkaProperties read = new KafkaProperties(new HashMap<>(), new HashMap<>(), new ArrayList<>());
        for (Map.Entry<String, String> entry : new TreeMap<>(environment).entrySet()) {
            String variable = entry.getKey();
            if (variable.startsWith(VARIABLE_PREFIX) && !entry.getValue().isBlank()) {
                read.add(variable, entry.getValue().strip());
            }
        }
        return read;
    }

    private void add(String variable, String value) throws InvalidSettingException {
        String spelling = variable.substring(VARIABLE_PREFIX.length());
        Property property = KNOWN.get(spelling);
        String name = property == null ? spelling.toLowerCase(Locale.ROOT).replace('_', '.') : property.name();
        if (property != null) {
            check(variable, value, property.definition());
        } else if (OPEN_PREFIXES.stream().noneMatch(name::startsWith)) {
            warnings.add(variable + ": Kafka Streams has no property " + name + "; passed on as it is");
        }
        values.put(name, value);
        variables.put(name, variable);
    }

    private static void check(String variable, String value, ConfigDef.ConfigKey definition) throws InvalidSettingException {
        String shown = definition.type == ConfigDef.Type.PASSWORD ? "its value" : value;
        final Object parsed;
        try {
            parsed = ConfigDef.parseType(definition.name, value, definition.type);
        } catch (ConfigException e) {
            throw new InvalidSettingException(variable, shown + " is no " + kind(definition.type), allowed(definition));
        }
        try {
            Optional.ofNullable(definition.validator).ifPresent(rule -> rule.ensureValid(definition.name, parsed));
        } catch (ConfigException e) {
            throw new InvalidSettingException(variable, shown + " is refused by Kafka", allowed(definition));
        }
    }

    private static String kind(ConfigDef.Type type) {
        return switch (type) {
            case BOOLEAN -> "truth value";
            case SHORT, INT, LONG -> "whole number";
            case DOUBLE -> "number";
            case CLASS -> "class that can be found";
            case LIST -> "list";
            case STRING, PASSWORD -> "text";
        };
    }

    private static String allowed(ConfigDef.ConfigKey definition) {
        String type = switch (definition.type) {
            case BOOLEAN -> "true, false";
            case SHORT, INT, LONG -> "a whole number (" + definition.type.name().toLowerCase(Locale.ROOT) + ")";
            case DOUBLE -> "a number";
            case CLASS -> "the full name of a class on the class path";
            case LIST -> "values with commas between";
            case STRING, PASSWORD -> "text";
        };
        return Optional.ofNullable(definition.validator).map(validator -> type + ", " + validator).orElse(type);
    }

    /** Collects every name that Kafka Streams accepts, by its spelling as a variable. */
    private static Map<String, Property> known() {
        Map<String, Property> known = new HashMap<>();
        Map<String, ConfigDef> clients = new LinkedHashMap<>();
        clients.put(StreamsConfig.CONSUMER_PREFIX, ConsumerConfig.configDef());
        clients.put(StreamsConfig.MAIN_CONSUMER_PREFIX, ConsumerConfig.configDef());
        clients.put(StreamsConfig.RESTORE_CONSUMER_PREFIX, ConsumerConfig.configDef());
        clients.put(StreamsConfig.GLOBAL_CONSUMER_PREFIX, ConsumerConfig.configDef());
        clients.put(StreamsConfig.PRODUCER_PREFIX, ProducerConfig.configDef());
        clients.put(StreamsConfig.ADMIN_CLIENT_PREFIX, AdminClientConfig.configDef());
        include(known, "", StreamsConfig.configDef());
        // Without prefix a client's property goes to every client that knows it; Streams' own definition comes first.
        clients.values().forEach(definitions -> include(known, "", definitions));
        clients.forEach((prefix, definitions) -> include(known, prefix, definitions));
        return known;
    }

    private static void include(Map<String, Property> known, String prefix, ConfigDef definitions) {
        definitions.configKeys().forEach((name, definition) -> {
            String full = prefix + name;
            known.putIfAbsent(full.toUpperCase(Locale.ROOT).replace('.', '_'), new Property(full, definition));
        });
    }
}
