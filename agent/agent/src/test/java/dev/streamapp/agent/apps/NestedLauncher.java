package dev.streamapp.agent.apps;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Starts {@link CountingApp} the way launchers with class loaders of their own do. The first argument says which:
 * {@code nested} has a parent that sees nothing of the application, as Spring Boot's; {@code stubborn} finds by name only what its own jars hold, as
 * Quarkus' does; {@code contextless} leaves the launching thread without a context loader, so that Kafka falls back to its own. The second argument is
 * the class path; the rest is handed on.
 */
public final class NestedLauncher {

    private NestedLauncher() {
    }

    /** Runs the application in its loader. */
    public static void main(String[] arguments) throws IOException, ReflectiveOperationException {
        List<URL> urls = new ArrayList<>();
        for (String entry : arguments[1].split(java.io.File.pathSeparator)) {
            urls.add(Path.of(entry).toUri().toURL());
        }
        URL[] jars = urls.toArray(URL[]::new);
        ClassLoader loader = arguments[0].equals("stubborn") ? new Stubborn(jars) : new URLClassLoader(jars, ClassLoader.getPlatformClassLoader());
        Thread.currentThread().setContextClassLoader(arguments[0].equals("contextless") ? null : loader);
        String[] rest = Arrays.copyOfRange(arguments, 2, arguments.length);
        try {
            loader.loadClass("dev.streamapp.agent.apps.CountingApp").getMethod("main", String[].class).invoke(null, (Object) rest);
        } catch (InvocationTargetException e) {
            throw new IllegalStateException(e.getCause());
        }
    }

    /** Never asks what was defined in it, only what lies in its jars. */
    private static final class Stubborn extends URLClassLoader {
        Stubborn(URL[] jars) {
            super(jars, ClassLoader.getPlatformClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                if (findResource(name.replace('.', '/') + ".class") == null) {
                    return getParent().loadClass(name);
                }
                return super.loadClass(name, resolve);
            }
        }
    }
}
