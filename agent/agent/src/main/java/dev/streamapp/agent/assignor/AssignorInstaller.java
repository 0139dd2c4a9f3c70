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
 * Installs the learner task assignor in the class loader of Kafka Streams, and checks that Kafka finds it there.
 *
 * <p>The agent's jar carries the assignor's classes as data. The installer keeps one result per loader, with a weak reference.
 */
public final class AssignorInstaller {

    public static final String NAME = "dev.streamapp.assignor.LearnerTaskAssignor";
    static final String INTERFACE = "org.apache.kafka.streams.processor.assignment.TaskAssignor";
    private static final String FOLDER = "assignor/";
    private static final String ENDING = ".classdata";
    private final Instrumentation instrumentation;
    private final Map<ClassLoader, Result> results = new WeakHashMap<>();
    private final Map<ClassLoader, Boolean> defined = new WeakHashMap<>();

    /** Whether Kafka finds the assignor; {@code limitation} is null if it does. */
    public record Result(Limitation limitation) {
        public boolean isInstalled() {
            return limitation == null;
        }
    }

    public AssignorInstaller(Instrumentation instrumentation) {
        this.instrumentation = instrumentation;
    }

    /** Defines the classes on the first call for a loader. Later calls return the same result. It throws nothing. */
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
            // Kafka creates its assignor by this call. A failure there would end the leader's stream thread.
            kafka.type("org.apache.kafka.common.utils.Utils").getMethod("newInstance", String.class, Class.class)
                    .invoke(null, NAME, kafka.type(INTERFACE));
            return new Result(null);
        } catch (InvocationTargetException e) {
            return new Result(new Limitation("assignor", "Kafka does not find the assignor: " + KafkaApi.reason(e), Limitation.Kind.UnknownLoader));
        } catch (ReflectiveOperationException | IOException | URISyntaxException | RuntimeException | LinkageError e) {
            return new Result(Limitation.failed("assignor", e));
        }
    }

    /** Returns the class for Kafka's Utils#loadClass if the agent defined it in this loader, else null. */
    public synchronized Class<?> definedClass(Class<?> base) throws ClassNotFoundException {
        ClassLoader loader = base.getClassLoader();
        // A loader may search its own jars only. The JVM knows every class that it defined.
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
            return;   // The application has the assignor as a library.
        } catch (ClassNotFoundException e) {
            // The usual case: the code below defines it.
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

    /** Defines the classes whose superclasses exist. The others stay pending for the next pass. */
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
