package dev.streamapp.agent.loader;

import java.lang.instrument.Instrumentation;
import java.lang.module.Configuration;
import java.lang.module.ModuleFinder;
import java.lang.module.ResolutionException;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.List;
import java.util.Set;

/**
 * Starts the agent in a class loader of its own, whose parent knows the JDK alone.
 *
 * <p>The JVM puts the agent's jar on the class path of the application. The agent needs doors of the JDK that are closed to applications, and Java
 * opens a door to a module. The unnamed module of this loader holds the agent alone; the one of the class path holds the whole application.
 * {@link dev.streamapp.agent.premain.Premain} calls this class by name.
 */
public final class AgentLoader {

    private static final String AGENT = "dev.streamapp.agent.Agent";
    private static final String HTTP_SERVER = "jdk.httpserver";

    private AgentLoader() {
    }

    /** Throws whatever keeps the agent from starting. */
    public static void start(Instrumentation instrumentation) throws Throwable {
        URL jar = AgentLoader.class.getProtectionDomain().getCodeSource().getLocation();
        // It stays open: the JVM loads classes of the agent until its end.
        @SuppressWarnings("resource")
        ClassLoader loader = new URLClassLoader("streamapp-agent", new URL[] {jar}, parent());
        try {
            Class.forName(AGENT, true, loader).getMethod("start", Instrumentation.class).invoke(null, instrumentation);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    /**
     * Returns the platform loader. With an application on the module path the JVM resolves only modules that it requires. The module of the HTTP server
     * is then in the runtime and in no layer, so this method adds a layer with it.
     */
    private static ClassLoader parent() {
        ClassLoader platform = ClassLoader.getPlatformClassLoader();
        ModuleFinder system = ModuleFinder.ofSystem();
        if (ModuleLayer.boot().findModule(HTTP_SERVER).isPresent() || system.find(HTTP_SERVER).isEmpty()) {
            return platform;
        }
        try {
            Configuration resolved = ModuleLayer.boot().configuration().resolve(ModuleFinder.of(), system, Set.of(HTTP_SERVER));
            return ModuleLayer.defineModulesWithOneLoader(resolved, List.of(ModuleLayer.boot()), platform).layer().findLoader(HTTP_SERVER);
        } catch (ResolutionException | LayerInstantiationException e) {
            // The server then says what is missing. Another module that it needs may be one that only the JVM itself can define.
            return platform;
        }
    }
}
