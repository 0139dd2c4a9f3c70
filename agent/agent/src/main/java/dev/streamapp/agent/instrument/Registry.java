package dev.streamapp.agent.instrument;

import dev.streamapp.agent.meeting.Meeting;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import java.util.Map;
import java.util.Set;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;

/**
 * Defines {@link Meeting} in the boot loader.
 *
 * <p>It defines the class directly. A jar on the boot class path makes HotSpot print a warning into the application's output,
 * and disables class data sharing. The jar is the fallback for a runtime that refuses the definition.
 */
public final class Registry {

    /** The key of the announcement, which the assignor reads. */
    public static final String ANNOUNCEMENT = "announcement";

    /** The key of the function by which the assignor reports its last result. */
    public static final String ROUND = "round";

    private static final String RESOURCE = Meeting.NAME.replace('.', '/') + ".class";

    private Registry() {
    }

    /** Returns the shared map. Throws if the runtime accepts no class in its boot loader. */
    @SuppressWarnings("unchecked")
    public static Map<String, Object> open(Instrumentation instrumentation) throws ReflectiveOperationException, IOException {
        return (Map<String, Object>) type(instrumentation).getField(Meeting.FIELD).get(null);
    }

    private static Class<?> type(Instrumentation instrumentation) throws ReflectiveOperationException, IOException {
        try {
            return inBootLoader();
        } catch (ClassNotFoundException e) {
            defineOrAppend(instrumentation, bytes());
        }
        return inBootLoader();
    }

    private static Class<?> inBootLoader() throws ClassNotFoundException {
        return Class.forName(Meeting.NAME, true, null);
    }

    private static void defineOrAppend(Instrumentation instrumentation, byte[] bytes) throws IOException {
        try {
            define(instrumentation, bytes);
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            append(instrumentation, bytes);
        }
    }

    private static byte[] bytes() throws IOException {
        try (InputStream in = Registry.class.getClassLoader().getResourceAsStream(RESOURCE)) {
            if (in == null) {
                throw new IOException("the agent's jar has no " + RESOURCE);
            }
            return in.readAllBytes();
        }
    }

    private static void define(Instrumentation instrumentation, byte[] bytes) throws ReflectiveOperationException {
        instrumentation.redefineModule(Object.class.getModule(), Set.of(), Map.of("jdk.internal.misc", Set.of(Registry.class.getModule())),
                                       Map.of(), Set.of(), Map.of());
        Class<?> unsafe = Class.forName("jdk.internal.misc.Unsafe");
        unsafe.getMethod("defineClass", String.class, byte[].class, int.class, int.class, ClassLoader.class, ProtectionDomain.class)
                .invoke(unsafe.getMethod("getUnsafe").invoke(null), Meeting.NAME, bytes, 0, bytes.length, null, null);
    }

    /** The JVM opens the file again by its name, so the file stays until the JVM ends. */
    private static void append(Instrumentation instrumentation, byte[] bytes) throws IOException {
        Path file = Files.createTempFile("streamapp-agent-", ".jar");
        file.toFile().deleteOnExit();
        try (OutputStream out = Files.newOutputStream(file); JarOutputStream jar = new JarOutputStream(out)) {
            jar.putNextEntry(new JarEntry(RESOURCE));
            jar.write(bytes);
            jar.closeEntry();
        }
        try (JarFile jar = new JarFile(file.toFile())) {
            instrumentation.appendToBootstrapClassLoaderSearch(jar);
        }
    }
}
