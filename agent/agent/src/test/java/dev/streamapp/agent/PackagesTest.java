package dev.streamapp.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The sources of each project: small folders, and no circle between packages. */
class PackagesTest {

    private static final int MAX_FILES = 15;
    private static final Pattern IMPORT = Pattern.compile("^import (?:static )?(dev\\.streamapp(?:\\.[a-z]+)*)\\.[A-Z].*;$", Pattern.MULTILINE);

    private static List<Path> sources(String project) throws IOException {
        try (Stream<Path> files = Files.walk(Path.of("../..", project, "src"))) {
            return files.filter(file -> file.toString().endsWith(".java")).toList();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"agent/agent", "agent/assignor", "examples/counter"})
    void noFolderHasMoreFilesThanOneReads(String project) throws IOException {
        Map<Path, Integer> counts = new TreeMap<>();
        sources(project).forEach(file -> counts.merge(file.getParent(), 1, Integer::sum));
        assertFalse(counts.isEmpty());
        counts.values().removeIf(count -> count <= MAX_FILES);
        assertEquals(Map.of(), counts);
    }

    @ParameterizedTest
    @ValueSource(strings = {"agent/agent", "agent/assignor", "examples/counter"})
    void noPackageDependsOnItself(String project) throws IOException {
        Map<String, Set<String>> uses = new TreeMap<>();
        for (Path file : sources(project)) {
            String path = file.toString().replace('\\', '/');
            if (path.contains("/main/java/")) {
                String own = path.substring(path.indexOf("/java/") + "/java/".length(), path.lastIndexOf('/')).replace('/', '.');
                Matcher imports = IMPORT.matcher(Files.readString(file));
                Set<String> used = uses.computeIfAbsent(own, none -> new TreeSet<>());
                imports.results().map(found -> found.group(1)).filter(name -> !name.equals(own)).forEach(used::add);
            }
        }
        assertFalse(uses.isEmpty());
        uses.forEach((name, direct) -> assertFalse(reachable(uses, direct).contains(name), () -> name + " depends on itself, by " + direct));
    }

    private static Set<String> reachable(Map<String, Set<String>> uses, Set<String> from) {
        Set<String> reached = new TreeSet<>(from);
        int before = 0;
        while (before < reached.size()) {
            before = reached.size();
            Set.copyOf(reached).forEach(name -> reached.addAll(uses.getOrDefault(name, Set.of())));
        }
        return reached;
    }
}
