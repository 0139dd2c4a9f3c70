package dev.streamapp.agent.config;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import dev.streamapp.agent.assignor.AssignorInstaller;
import dev.streamapp.agent.kafka.KafkaApi;
import dev.streamapp.agent.kafka.Limitation;
import dev.streamapp.agent.kafka.StateDirectory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/**
 * The configuration of an instance, read once from its StreamsConfig. It holds plain values and no object of Kafka.
 *
 * @param applicationId the consumer group
 * @param json the configuration fields of the report's instance
 * @param limitations the functions that this instance does not get
 * @param state the state directory
 */
public record InstanceConfig(String applicationId, JsonObject json, List<Limitation> limitations, StateDirectory state) {

    private static final long KAFKAS_SESSION_MILLIS = 45_000;
    private static final String CONFIG = "org.apache.kafka.streams.StreamsConfig";
    private static final String ABSTRACT = "org.apache.kafka.common.config.AbstractConfig";

    /** Set while this class reads the consumer's settings: it needs their values without the agent's defaults. */
    private static final ThreadLocal<AtomicBoolean> ASKING = new ThreadLocal<>();

    /** Adds defaults to the unset settings of the main consumer. It changes Kafka's map in place. */
    @SuppressWarnings("unchecked")
    public static void complete(Defaults defaults, Object config, Object consumerConfigs) throws ReflectiveOperationException {
        AtomicBoolean asking = ASKING.get();
        if (asking != null) {
            asking.set(true);
            return;
        }
        ClassLoader loader = KafkaApi.loaderOf(config, CONFIG);
        KafkaApi kafka = new KafkaApi(loader);
        Map<String, Object> consumer = (Map<String, Object>) consumerConfigs;
        consumer.putAll(defaults.decide(values(kafka, config), consumer, session(kafka), loader).given());
    }

    /** Adds defaults to the unset settings of a restore consumer. It changes Kafka's map in place. */
    @SuppressWarnings("unchecked")
    public static void completeRestore(Defaults defaults, Object config, Object consumerConfigs) throws ReflectiveOperationException {
        AtomicBoolean asking = ASKING.get();
        if (asking != null) {
            asking.set(true);
            return;
        }
        Map<String, Object> consumer = (Map<String, Object>) consumerConfigs;
        consumer.putAll(defaults.decideRestore(values(new KafkaApi(KafkaApi.loaderOf(config, CONFIG)), config), consumer));
    }

    /**
     * Lets a thread be prepared while it has copies alone, if that is wanted.
     *
     * @param allow is called with whether copies of this application come on demand
     */
    public static void allowWarmUp(Defaults defaults, Object config, Consumer<Boolean> allow) throws ReflectiveOperationException {
        if (ASKING.get() == null && defaults.wantsWarmUp()) {
            allow.accept(Defaults.copiesComeOnDemand(values(new KafkaApi(KafkaApi.loaderOf(config, CONFIG)), config)));
        }
    }

    public static InstanceConfig read(Defaults defaults, Object config) throws ReflectiveOperationException {
        ClassLoader loader = KafkaApi.loaderOf(config, CONFIG);
        KafkaApi kafka = new KafkaApi(loader);
        Map<?, ?> values = values(kafka, config);
        String application = String.valueOf(values.get("application.id"));
        AtomicBoolean advised = new AtomicBoolean();
        Map<Object, Object> consumer = new HashMap<>(consumerConfigs(kafka, config, application, advised));
        Defaults.Decision decision = defaults.decide(values, consumer, session(kafka), loader);
        if (!advised.get()) {
            Limitation changed = new Limitation("configuration", "getMainConsumerConfigs of this release could not be advised", Limitation.Kind.Failed);
            decision = new Defaults.Decision(Map.of(), List.of(changed));
        }
        consumer.putAll(decision.given());
        List<Limitation> limitations = new ArrayList<>(decision.limitations());
        JsonObject json = new JsonObject();
        String protocol = Defaults.protocol(values);
        json.addProperty("protocol", protocol);
        if (protocol.equals("classic")) {
            json.add("assignor", assignor(consumer));
            json.addProperty("sessionTimeoutMillis", Defaults.number(consumer.get("session.timeout.ms"), session(kafka)));
            json.addProperty("heartbeatMillis", Defaults.number(consumer.get(Defaults.HEARTBEAT), consumerDefault(kafka, Defaults.HEARTBEAT, 3000)));
        }
        addNumber(json, "acceptableRecoveryLag", values.get("acceptable.recovery.lag"));
        addNumber(json, "standbyReplicas", values.get("num.standby.replicas"));
        json.addProperty("isStatic", consumer.get("group.instance.id") != null);
        boolean leaveGiven = addLeaving(json, limitations, defaults, kafka, protocol);
        json.add("defaultsGiven", given(decision, restore(defaults, kafka, config, values), leaveGiven));
        Path directory = Path.of(String.valueOf(values.get("state.dir"))).toAbsolutePath();
        json.addProperty("stateDirectory", directory.toString());
        StateDirectory state = new StateDirectory(directory.resolve(application));
        return new InstanceConfig(application, json, List.copyOf(limitations), state);
    }

    private static Map<?, ?> values(KafkaApi kafka, Object config) throws ReflectiveOperationException {
        return (Map<?, ?>) kafka.call(ABSTRACT, "values", config);
    }

    private static Map<?, ?> consumerConfigs(KafkaApi kafka, Object config, String application, AtomicBoolean advised)
            throws ReflectiveOperationException {
        ASKING.set(advised);
        try {
            return (Map<?, ?>) kafka.type(CONFIG).getMethod("getMainConsumerConfigs", String.class, String.class, int.class)
                    .invoke(config, application, "streamapp-agent", 1);
        } finally {
            ASKING.remove();
        }
    }

    /** The new values of the restore consumer; none where the method of this release could not be advised. */
    private static Map<String, Object> restore(Defaults defaults, KafkaApi kafka, Object config, Map<?, ?> values) throws ReflectiveOperationException {
        AtomicBoolean advised = new AtomicBoolean();
        ASKING.set(advised);
        try {
            Map<?, ?> consumer = (Map<?, ?>) kafka.type(CONFIG).getMethod("getRestoreConsumerConfigs", String.class).invoke(config, "streamapp-agent");
            return advised.get() ? defaults.decideRestore(values, consumer) : Map.of();
        } catch (NoSuchMethodException e) {
            return Map.of();
        } finally {
            ASKING.remove();
        }
    }

    private static JsonObject assignor(Map<?, ?> consumer) {
        Object own = consumer.get(Defaults.ASSIGNOR) != null ? consumer.get(Defaults.ASSIGNOR) : consumer.get(Defaults.INTERNAL_ASSIGNOR);
        String name = own == null ? Defaults.STOCK_ASSIGNOR : Defaults.className(own);
        JsonObject json = new JsonObject();
        json.addProperty("class", name);
        json.addProperty("isOurs", name.equals(AssignorInstaller.NAME));
        return json;
    }

    /** Adds whether close() leaves the group. Returns whether the agent makes it leave. */
    private static boolean addLeaving(JsonObject json, List<Limitation> limitations, Defaults defaults, KafkaApi kafka, String protocol) {
        boolean given = false;
        if (protocol.equals("classic")) {
            if (!defaults.enabled("leave")) {
                limitations.add(new Limitation("leave", "STREAMAPP_AGENT_DEFAULTS does not name it", Limitation.Kind.SwitchedOff));
            } else if (!kafka.has(KafkaApi.CLOSE_OPTIONS)) {
                limitations.add(new Limitation("leave", "before 4.2 close() of a dynamic member cannot leave", Limitation.Kind.OlderStreams));
            } else {
                given = true;
            }
        }
        json.addProperty("leavesOnClose", given || protocol.equals("streams"));
        return given;
    }

    private static JsonArray given(Defaults.Decision decision, Map<String, Object> restore, boolean leave) {
        JsonArray given = new JsonArray();
        decision.given().forEach((name, value) -> given.add(entry(name, value.toString())));
        restore.forEach((name, value) -> given.add(entry("restore.consumer." + name, value.toString())));
        if (leave) {
            given.add(entry("close.group.membership.operation", "LEAVE_GROUP while the process leaves"));
        }
        return given;
    }

    private static JsonObject entry(String name, String value) {
        JsonObject json = new JsonObject();
        json.addProperty("name", name);
        json.addProperty("value", value);
        return json;
    }

    private static void addNumber(JsonObject json, String name, Object value) {
        long number = Defaults.number(value, -1);
        if (number >= 0) {
            json.addProperty(name, number);
        }
    }

    private static long session(KafkaApi kafka) {
        return consumerDefault(kafka, "session.timeout.ms", KAFKAS_SESSION_MILLIS);
    }

    private static long consumerDefault(KafkaApi kafka, String name, long otherwise) {
        try {
            Object definition = kafka.type("org.apache.kafka.clients.consumer.ConsumerConfig").getMethod("configDef").invoke(null);
            return Defaults.number(((Map<?, ?>) kafka.call("org.apache.kafka.common.config.ConfigDef", "defaultValues", definition)).get(name), otherwise);
        } catch (ReflectiveOperationException e) {
            return otherwise;
        }
    }
}
