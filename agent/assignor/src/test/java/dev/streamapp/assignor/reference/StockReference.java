package dev.streamapp.assignor.reference;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;

/** Kafka's high-availability assignor, of whatever release is on the class path. */
final class StockReference implements ReferenceMain.Reference {

    private static final String INTERNALS = "org.apache.kafka.streams.processor.internals.assignment.";
    private static final String PUBLIC = "org.apache.kafka.streams.processor.assignment.";

    private final Method parse;
    private final Constructor<?> client;
    private final Constructor<?> configs;
    private final Method assign;
    private final Constructor<?> assignor;
    /** Null before 3.8, where a process ID is a plain UUID. */
    private final Constructor<?> processId;

    StockReference() throws ReflectiveOperationException {
        parse = task().getMethod("parse", String.class);
        client = widest(Class.forName(INTERNALS + "ClientState"), Set.class);
        assignor = Class.forName(INTERNALS + "HighAvailabilityTaskAssignor").getConstructor();
        assign = Arrays.stream(assignor.getDeclaringClass().getMethods()).filter(method -> method.getName().equals("assign")).findFirst().orElseThrow();
        configs = widest(assign.getParameterTypes()[assign.getParameterCount() - 1], long.class, Long.class);
        processId = find(PUBLIC + "ProcessId") == null ? null : find(PUBLIC + "ProcessId").getConstructor(UUID.class);
    }

    private static Class<?> task() throws ClassNotFoundException {
        return Class.forName("org.apache.kafka.streams.processor.TaskId");
    }

    private static Class<?> find(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException older) {
            return null;
        }
    }

    /** Return the constructor with the most parameters of those whose first has one of these types. */
    private static Constructor<?> widest(Class<?> type, Class<?>... first) {
        Constructor<?> widest = null;
        for (Constructor<?> one : type.getDeclaredConstructors()) {
            boolean fits = one.getParameterCount() > 1 && Arrays.asList(first).contains(one.getParameterTypes()[0]);
            boolean optional = fits && Arrays.asList(one.getParameterTypes()).contains(OptionalInt.class);
            if (fits && (widest == null || one.getParameterCount() > widest.getParameterCount() || optional)) {
                widest = one;
            }
        }
        widest.setAccessible(true);
        return widest;
    }

    @Override
    public Object answer(JsonNode question) throws ReflectiveOperationException {
        Set<Object> all = new HashSet<>();
        Set<Object> stateful = new HashSet<>();
        for (Map.Entry<String, JsonNode> entry : Questions.entries(question.get("tasks"))) {
            Object task = parse.invoke(null, entry.getKey());
            all.add(task);
            if (entry.getValue().get("stateful").asBoolean()) {
                stateful.add(task);
            }
        }
        Map<Object, Object> clients = new HashMap<>();
        for (JsonNode node : question.get("clients")) {
            UUID id = UUID.fromString(node.get("process").asText());
            clients.put(processId == null ? id : processId.newInstance(id), client(node, id));
        }
        Object settings = configs(question.get("settings"));
        Object[] given = assign.getParameterCount() == 4
            ? new Object[] {clients, all, stateful, settings}
            : new Object[] {clients, all, stateful, withoutRacks(settings), settings};
        boolean probes = (boolean) assign.invoke(assignor.newInstance(), given);
        return told(clients, probes);
    }

    private Object client(JsonNode node, UUID id) throws ReflectiveOperationException {
        Map<Object, Long> lags = new HashMap<>();
        for (Map.Entry<String, JsonNode> lag : Questions.entries(node.get("lags"))) {
            lags.put(parse.invoke(null, lag.getKey()), lag.getValue().asLong());
        }
        Object[] given = new Object[client.getParameterCount()];
        given[0] = parsed(node.get("actives"));
        given[1] = parsed(node.get("copies"));
        given[2] = lags;
        for (int place = 3; place < given.length; place++) {
            Class<?> type = client.getParameterTypes()[place];
            given[place] = type == int.class ? (Object) node.get("threads").asInt() : type == Map.class ? Map.of() : processId.newInstance(id);
        }
        return client.newInstance(given);
    }

    private Set<Object> parsed(JsonNode names) throws ReflectiveOperationException {
        Set<Object> tasks = new HashSet<>();
        for (String name : Questions.names(names)) {
            tasks.add(parse.invoke(null, name));
        }
        return tasks;
    }

    private Object configs(JsonNode node) throws ReflectiveOperationException {
        Object[] given = new Object[configs.getParameterCount()];
        given[0] = node.get("acceptableRecoveryLag").asLong();
        given[1] = node.get("maxWarmupReplicas").asInt();
        given[2] = node.get("numStandbyReplicas").asInt();
        given[3] = 600_000L;
        for (int place = 4; place < given.length; place++) {
            Class<?> type = configs.getParameterTypes()[place];
            given[place] = type == List.class ? List.of() : type == OptionalInt.class ? OptionalInt.empty() : type == String.class ? "none" : null;
        }
        return configs.newInstance(given);
    }

    private Object withoutRacks(Object settings) throws ReflectiveOperationException {
        Class<?> type = assign.getParameterTypes()[3];
        Object cluster = Class.forName("org.apache.kafka.common.Cluster").getMethod("empty").invoke(null);
        Object time = Class.forName("org.apache.kafka.common.utils.Time").getField("SYSTEM").get(null);
        return type.getConstructors()[0].newInstance(cluster, Map.of(), Map.of(), Map.of(), Map.of(), null, settings, time);
    }

    private static Object told(Map<Object, Object> clients, boolean probes) throws ReflectiveOperationException {
        Map<String, Object> placements = new TreeMap<>();
        for (Map.Entry<Object, Object> entry : clients.entrySet()) {
            placements.put(entry.getKey().toString(), Map.of(
                "actives", names(entry.getValue(), "activeTasks"), "standbys", names(entry.getValue(), "standbyTasks")));
        }
        return Map.of("placements", placements, "final", !probes);
    }

    private static Set<String> names(Object client, String accessor) throws InvocationTargetException, ReflectiveOperationException {
        Method method = client.getClass().getDeclaredMethod(accessor);
        method.setAccessible(true);
        Set<String> names = new TreeSet<>();
        ((Set<?>) method.invoke(client)).forEach(task -> names.add(task.toString()));
        return names;
    }
}
