package dev.streamapp.agent.instrument;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.streamapp.agent.meeting.Meeting;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.jar.JarFile;
import org.junit.jupiter.api.Test;

/** A runtime that allows no definition in its boot loader; the integration tests show the usual way. */
class RegistryTest {

    /** A loader with one class and no parent. */
    private static final class IsolatedLoader extends ClassLoader {
        private final byte[] bytes;

        private IsolatedLoader(byte[] bytes) {
            super(null);
            this.bytes = bytes;
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            if (!name.equals(Meeting.NAME)) {
                throw new ClassNotFoundException(name);
            }
            return defineClass(name, bytes, 0, bytes.length);
        }
    }

    @Test
    void aRuntimeThatDefinesNothingThereGetsAJarWithTheOneClass() throws ClassNotFoundException {
        List<String> entries = new ArrayList<>();
        List<byte[]> classes = new ArrayList<>();
        Instrumentation stubborn = (Instrumentation) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {Instrumentation.class},
                (proxy, method, arguments) -> {
                    if (!method.getName().equals("appendToBootstrapClassLoaderSearch")) {
                        throw new UnsupportedOperationException(method.getName());
                    }
                    JarFile jar = (JarFile) arguments[0];
                    jar.stream().forEach(entry -> entries.add(entry.getName()));
                    classes.add(jar.getInputStream(jar.entries().nextElement()).readAllBytes());
                    return null;
                });
        assertThrows(ClassNotFoundException.class, () -> Registry.open(stubborn), "nothing was really appended");
        assertEquals(List.of(Meeting.NAME.replace('.', '/') + ".class"), entries);
        assertEquals(Meeting.NAME, new IsolatedLoader(classes.get(0)).loadClass(Meeting.NAME).getName());
    }

    @Test
    void theOneClassNeedsNothingButTheJdk() throws ReflectiveOperationException, java.io.IOException {
        try (var in = Meeting.class.getResourceAsStream("Meeting.class")) {
            Class<?> alone = new IsolatedLoader(in.readAllBytes()).loadClass(Meeting.NAME);
            assertEquals(Map.of(), alone.getField(Meeting.FIELD).get(null));
            assertNull(alone.getClassLoader().getParent());
        }
    }

    @Test
    void theAssignorLooksInTheSamePlace() throws ReflectiveOperationException {
        Class<?> bridge = Class.forName("dev.streamapp.assignor.Bridge");
        assertEquals(List.of(Meeting.NAME, Meeting.FIELD, Registry.ANNOUNCEMENT, Registry.ROUND),
                     List.of(constant(bridge, "MEETING"), constant(bridge, "FIELD"), constant(bridge, "ANNOUNCEMENT"), constant(bridge, "ROUND")));
    }

    private static Object constant(Class<?> type, String name) throws ReflectiveOperationException {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(null);
    }
}
