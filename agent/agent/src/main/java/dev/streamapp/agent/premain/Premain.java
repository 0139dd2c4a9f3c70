package dev.streamapp.agent.premain;

import java.lang.instrument.Instrumentation;
import java.lang.reflect.InvocationTargetException;

/**
 * The entry point of {@code -javaagent:streamapp-agent.jar}. It starts the agent where the JVM can run it.
 *
 * <p>The compiler writes this class for Java 8, and it names no other class of the agent. A JVM that cannot load an agent's first class aborts
 * before the application's main. So an older JVM loads this class, reads one line about it on stderr, and starts the application.
 */
public final class Premain {

    /** The version of the class files of Java 17, for which the rest of the agent is compiled. */
    private static final double CLASS_FILES_OF_JAVA_17 = 61;

    private Premain() {
    }

    /** Called by the JVM before the application's main. It throws nothing: the application must start, whatever failed here. */
    public static void premain(String arguments, Instrumentation instrumentation) {
        try {
            if (Double.parseDouble(System.getProperty("java.class.version")) < CLASS_FILES_OF_JAVA_17) {
                warn("the agent stays off: it needs Java 17, and this JVM is Java " + System.getProperty("java.version"));
                return;
            }
            start(instrumentation);
        } catch (Throwable e) {
            warn("the agent stays off: " + e);
        }
    }

    private static void start(Instrumentation instrumentation) throws Throwable {
        try {
            Class.forName("dev.streamapp.agent.loader.AgentLoader").getMethod("start", Instrumentation.class).invoke(null, instrumentation);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    private static void warn(String warning) {
        System.err.println("streamapp-agent: " + warning);
    }
}
