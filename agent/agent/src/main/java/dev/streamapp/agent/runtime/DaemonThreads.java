package dev.streamapp.agent.runtime;

/**
 * Creates the agent's threads.
 *
 * <p>They are daemons, so they never keep the JVM alive. They hold no class loader of the application.
 * Their thread group handles uncaught errors: the application's own handler might end the JVM.
 * Threads that these threads start, such as those of the HTTP server, belong to the same group.
 */
public final class DaemonThreads {

    private static final ThreadGroup GROUP = new ThreadGroup("streamapp-agent") {
        @Override
        public void uncaughtException(Thread thread, Throwable problem) {
            WarningLog.warn("the thread " + thread.getName() + " ended", problem);
        }
    };

    private DaemonThreads() {
    }

    public static Thread make(String role, Runnable work) {
        Thread thread = new Thread(GROUP, work, "streamapp-agent-" + role, 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(ClassLoader.getSystemClassLoader());
        return thread;
    }
}
