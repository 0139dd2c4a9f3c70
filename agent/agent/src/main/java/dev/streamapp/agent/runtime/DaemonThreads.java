package dev.streamapp.agent.runtime;

/**
 * Threads that never keep a JVM alive, hold on to no class loader of the application, and whose end is no business of it: many an application sets a
 * handler for uncaught errors that ends the JVM. Threads that these start, as the HTTP server does, belong to the same group.
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
