package dev.streamapp.agent.assignor;

import dev.streamapp.agent.kafka.KafkaApi;
import dev.streamapp.agent.kafka.Limitation;
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
public final class AssignorInstaller {

    public static final String NAME = "dev.streamapp.assignor.LearnerTaskAssignor";
    static final String INTERFACE = "org.apache.kafka.streams.processor.assignment.TaskAssignor";
    private static final String FOLDER = "assignor/";
    private static final String ENDING = ".classdata";
    private final Instrumentation instrumentation;
    private final Map<ClassLoader, Result> results = new WeakHashMap<>();
    private final Map<ClassLoader, Boolean> defined = new WeakHashMap<>();

    /** Whether Kafka finds the assignor; {@code aside} is null where it does. */
    public record Result(Limitation limitation) {
        public boolean isInstalled() {
            return limitation == null;
        }
    }

    public AssignorInstaller(Instrumentation instrumentation) {
        this.instrumentation = instrumentation;
    }

    /** Places the classes on the first call for a loader, then answers from memory. Throws nothing. */
    public synchronized Result install(ClassLoader loader) {
        Result known = results.get(loader);
        if (known == null) {
            known = tryInstall(new KafkaApi(loader), loader);
            results.put(loader, known);
        }
        return known;
    }

    private Result tryInstall(KafkaApi kafka, ClassLoader loader) {
        if (!kafka.has(INTERFACE)) {
            return new Result(new Limitation("assignor", "this release has no public TaskAssignor (it came with 3.8)", Limitation.Kind.OlderStreams));
        }
        try {
            define(kafka, loader);
            // The very call by which Kafka makes an assignor: what fails here would kill the leader's stream thread there.
            kafka.type("org.apache.kafka.common.utils.Utils").getMethod("newInstance", String.class, Class.class)
                    .invoke(null, NAME, kafka.type(INTERFACE));
            return new Result(null);
        } catch (InvocationTargetException e) {
            return new Result(new Limitation("assignor", "Kafka does not find the assignor: " + KafkaApi.reason(e), Limitation.Kind.UnknownLoader));
        } catch (ReflectiveOperationException | IOException | URISyntaxException | RuntimeException | LinkageError e) {
            return new Result(Limitation.failed("assignor", e));
        }
    }

    /** The class for a caller of Kafka's Utils#loadClass whose loaders do not find it by name; null where it was not defined by the agent. */
    public synchronized Class<?> definedClass(Class<?> base) throws ClassNotFoundException {
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

    private void define(KafkaApi kafka, ClassLoader loader) throws ReflectiveOperationException, IOException, URISyntaxException {
        try {
            Class.forName(NAME, false, loader);
            return;   // The application brings it as a library.
        } catch (ClassNotFoundException e) {
            // The usual case: it is defined below.
        }
        Map<String, byte[]> pending = classes();
        if (pending.isEmpty()) {
            throw new ClassNotFoundException("the agent's jar carries no assignor");
        }
        openClassLoader();
        Method define = ClassLoader.class.getDeclaredMethod("defineClass", String.class, byte[].class, int.class, int.class, ProtectionDomain.class);
        define.setAccessible(true);
        ProtectionDomain domain = kafka.type(INTERFACE).getProtectionDomain();
        while (!pending.isEmpty()) {
            int before = pending.size();
            LinkageError last = defineResolvable(pending, loader, define, domain);
            if (pending.size() == before) {
                throw last;
            }
        }
        defined.put(loader, true);
    }

    /** A class whose superclass is not defined yet fails and is tried again in the next round. */
    private static LinkageError defineResolvable(Map<String, byte[]> pending, ClassLoader loader, Method define, ProtectionDomain domain)
            throws ReflectiveOperationException {
        LinkageError last = null;
        for (String name : List.copyOf(pending.keySet())) {
            byte[] bytes = pending.get(name);
            try {
                define.invoke(loader, name, bytes, 0, bytes.length, domain);
                pending.remove(name);
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
                                       Map.of("java.lang", Set.of(AssignorInstaller.class.getModule())), Set.of(), Map.of());
    }

    private static Map<String, byte[]> classes() throws IOException, URISyntaxException {
        Map<String, byte[]> classes = new HashMap<>();
        Path jar = Path.of(AssignorInstaller.class.getProtectionDomain().getCodeSource().getLocation().toURI());
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
