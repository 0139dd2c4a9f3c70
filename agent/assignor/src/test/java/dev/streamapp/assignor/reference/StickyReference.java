package dev.streamapp.assignor.reference;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** The broker's sticky assignor of the streams group protocol, of whatever release is on the class path. */
final class StickyReference implements ReferenceMain.Reference {

    private static final String PACKAGE = "org.apache.kafka.coordinator.group.streams.assignor.";

    private final Method assign;
    private final Constructor<?> assignor;
    private final Constructor<?> group;
    private final Constructor<?> member;
    /** Null before 4.4, where the settings are a map of strings. */
    private final Constructor<?> configs;

    StickyReference() throws ReflectiveOperationException {
        assignor = Class.forName(PACKAGE + "StickyTaskAssignor").getConstructor();
        assign = Arrays.stream(assignor.getDeclaringClass().getMethods())
            .filter(method -> method.getName().equals("assign") && !method.isBridge()).findFirst().orElseThrow();
        group = Class.forName(PACKAGE + "GroupSpecImpl").getConstructors()[0];
        boolean older = group.getParameterTypes()[1] == Map.class;
        member = Class.forName(PACKAGE + (older ? "AssignmentMemberSpec" : "MemberMetadataAndStateImpl")).getConstructors()[0];
        configs = older ? null : Class.forName(PACKAGE + "AssignmentConfigsImpl").getConstructors()[0];
    }

    @Override
    public Object answer(JsonNode question) throws ReflectiveOperationException {
        // The broker collects members in a HashMap too; its order decides ties.
        Map<String, Object> members = new HashMap<>();
        for (JsonNode node : question.get("members")) {
            members.put(node.get("id").asText(), member(node));
        }
        int standbys = question.get("standbys").asInt();
        Object settings = configs == null ? Map.of("num.standby.replicas", String.valueOf(standbys)) : configs.newInstance(standbys, List.of());
        Object answer = assign.invoke(assignor.newInstance(), group.newInstance(members, settings), topology(question.get("subtopologies")));
        Map<?, ?> found = (Map<?, ?>) answer.getClass().getMethod("members").invoke(answer);
        Map<String, Object> placements = new TreeMap<>();
        for (Map.Entry<?, ?> entry : found.entrySet()) {
            placements.put(entry.getKey().toString(), Map.of(
                "actives", names(entry.getValue(), "activeTasks"), "standbys", names(entry.getValue(), "standbyTasks")));
        }
        return Map.of("placements", placements);
    }

    private Object member(JsonNode node) throws ReflectiveOperationException {
        Map<String, Set<Integer>> actives = partitions(node.get("actives"));
        Map<String, Set<Integer>> standbys = partitions(node.get("standbys"));
        String process = node.get("process").asText();
        return configs == null
            ? member.newInstance(Optional.empty(), Optional.empty(), actives, standbys, Map.of(), process, Map.of(), Map.of(), Map.of())
            : member.newInstance(Optional.empty(), Optional.empty(), process, Map.of(), actives, standbys, Map.of(), offsets(node.get("offsets")), Map.of());
    }

    private static Map<String, Set<Integer>> partitions(JsonNode names) {
        Map<String, Set<Integer>> partitions = new TreeMap<>();
        for (String name : Questions.names(names)) {
            String[] parts = name.split("_");
            partitions.computeIfAbsent(parts[0], none -> new TreeSet<>()).add(Integer.valueOf(parts[1]));
        }
        return partitions;
    }

    private static Map<String, Map<Integer, Long>> offsets(JsonNode node) {
        Map<String, Map<Integer, Long>> offsets = new TreeMap<>();
        for (Map.Entry<String, JsonNode> entry : Questions.entries(node)) {
            String[] parts = entry.getKey().split("_");
            offsets.computeIfAbsent(parts[0], none -> new TreeMap<>()).put(Integer.valueOf(parts[1]), entry.getValue().asLong());
        }
        return offsets;
    }

    private Object topology(JsonNode subtopologies) {
        Map<String, JsonNode> known = new TreeMap<>();
        subtopologies.forEach(node -> known.put(node.get("id").asText(), node));
        Class<?> type = assign.getParameterTypes()[1];
        return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, given) -> switch (method.getName()) {
            case "subtopologies" -> new ArrayList<>(known.keySet());
            case "maxNumInputPartitions" -> known.get((String) given[0]).get("partitions").asInt();
            case "isStateful" -> known.get((String) given[0]).get("stateful").asBoolean();
            default -> throw new UnsupportedOperationException(method.getName());
        });
    }

    private static Set<String> names(Object placement, String accessor) throws ReflectiveOperationException {
        Set<String> names = new TreeSet<>();
        ((Map<?, ?>) placement.getClass().getMethod(accessor).invoke(placement)).forEach(
            (subtopology, partitions) -> ((Set<?>) partitions).forEach(partition -> names.add(subtopology + "_" + partition)));
        return names;
    }
}
