package dev.streamapp.agent.assignor;

import dev.streamapp.agent.kafka.Aside;
import dev.streamapp.agent.kafka.KafkaApi;
import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * Brings the learner task assignor into the class loader that loaded Kafka Streams, and tries whether Kafka will find it there. The classes travel in
 * the agent's jar as data. One outcome per loader, which is held weakly.
 */
public final class AssignorClasses {

    public static final String NAME = "dev.streamapp.assignor.LearnerTaskAssignor";
    static final String INTERFACE = "org.apache.kafka.streams.processor.assignment.TaskAssignor";
    private static final String FOLDER = "assignor/";
    private static final String ENDING = ".classdata";
    private final Instrumentation instrumentation;
    private final Map<ClassLoader, Outcome> outcomes = new WeakHashMap<>();
    private final Map<ClassLoader, Boolean> defined = new WeakHashMap<>();

    /** Whether Kafka finds the assignor; {@code aside} is null where it does. */
    public record Outcome(Aside aside) {
        public boolean found() {
            return aside == null;
        }
    }

    public AssignorClasses(Instrumentation instrumentation) {
        this.instrumentation = instrumentation;
    }

    /** Places the classes on the first call for a loader, then answers from memory. Throws nothing. */
    public synchronized Outcome outcome(ClassLoader loader) {
        Outcome known = outcomes.get(loader);
        if (known == null) {
            known = tried(new KafkaApi(loader), loader);
            outcomes.put(loader, known);
        }
        return known;
    }

    private Outcome tried(KafkaApi kafka, ClassLoader loader) {
        if (!kafka.has(INTERFACE)) {
            return new Outcome(new Aside("assignor", "this release has no public TaskAssignor (it came with 3.8)", Aside.Kind.OlderStreams));
        }
        try {
            place(kafka, loader);
            // The very call by which Kafka makes an assignor: what fails here would kill the leader's stream thread there.
            kafka.type("org.apache.kafka.common.utils.Utils").getMethod("newInstance", String.class, Class.class)
                    .invoke(null, NAME, kafka.type(INTERFACE));
            return new Outcome(null);
        } catch (InvocationTargetException e) {
            return new Outcome(new Aside("assignor", "Kafka does not find the assignor: " + KafkaApi.reason(e), Aside.Kind.UnknownLoader));
        } catch (ReflectiveOperationException | IOException | URISyntaxException | RuntimeException | LinkageError e) {
            return new Outcome(Aside.failed("assignor", e));
        }
    }

    /** The class for a caller of Kafka's Utils#loadClass whose loaders do not find it by name; null where it was not defined by the agent. */
    public synchronized Class<?> loaded(Class<?> base) throws ClassNotFoundException {
        ClassLoader loader = base.getClassLoader();
        // The loader may refuse to look for what is not in its jars; the JVM itself knows what was defined in it.
        return Boolean.TRUE.equals(defined.get(loader)) ? findDefined(loader) : null;
    }

    private Class<?> findDefined(ClassLoader loader) throws ClassNotFoundException {
        try {
            Method find = ClassLoader.class.getDeclaredMethod("findLoadedClass", String.class);
            find.setAccessible(true);
            return (Class<?>) find.invoke(loader, NAME);
        } catch (ReflectiveOperationException e) {
            throw new ClassNotFoundException(NAME, e);
        }
    }

    private void place(KafkaApi kafka, ClassLoader loader) throws ReflectiveOperationException, IOException, URISyntaxException {
        try {
            Class.forName(NAME, false, loader);
            return;   // The application brings it as a library.
        } catch (ClassNotFoundException e) {
            // The usual case: it is defined below.
        }
        Map<String, byte[]> waiting = classes();
        if (waiting.isEmpty()) {
            throw new ClassNotFoundException("the agent's jar carries no assignor");
        }
        openClassLoader();
        Method define = ClassLoader.class.getDeclaredMethod("defineClass", String.class, byte[].class, int.class, int.class, ProtectionDomain.class);
        define.setAccessible(true);
        ProtectionDomain domain = kafka.type(INTERFACE).getProtectionDomain();
        while (!waiting.isEmpty()) {
            int before = waiting.size();
            LinkageError last = defineWhatCanBe(waiting, loader, define, domain);
            if (waiting.size() == before) {
                throw last;
            }
        }
        defined.put(loader, true);
    }

    /** A class whose superclass is not defined yet fails and is tried again in the next round. */
    private static LinkageError defineWhatCanBe(Map<String, byte[]> waiting, ClassLoader loader, Method define, ProtectionDomain domain)
            throws ReflectiveOperationException {
        LinkageError last = null;
        for (String name : List.copyOf(waiting.keySet())) {
            byte[] bytes = waiting.get(name);
            try {
                define.invoke(loader, name, bytes, 0, bytes.length, domain);
                waiting.remove(name);
            } catch (InvocationTargetException e) {
                if (!(e.getCause() instanceof NoClassDefFoundError error)) {
                    throw e;
                }
                last = error;
            }
        }
        return last;
    }

    private void openClassLoader() {
        instrumentation.redefineModule(ClassLoader.class.getModule(), Set.of(), Map.of(),
                                       Map.of("java.lang", Set.of(AssignorClasses.class.getModule())), Set.of(), Map.of());
    }

    private static Map<String, byte[]> classes() throws IOException, URISyntaxException {
        Map<String, byte[]> classes = new HashMap<>();
        Path jar = Path.of(AssignorClasses.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        try (JarFile file = new JarFile(jar.toFile())) {
            for (JarEntry entry : (Iterable<JarEntry>) file.stream()::iterator) {
                String path = entry.getName();
                if (path.startsWith(FOLDER) && path.endsWith(ENDING)) {
                    String name = path.substring(FOLDER.length(), path.length() - ENDING.length()).replace('/', '.');
                    classes.put(name, file.getInputStream(entry).readAllBytes());
                }
            }
        }
        return classes;
    }
}
