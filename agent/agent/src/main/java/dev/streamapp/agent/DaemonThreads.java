package dev.streamapp.agent;

/** Threads that never keep a JVM alive, and hold on to no class loader of the application. */
final class DaemonThreads {

    private DaemonThreads() {
    }

    static Thread make(String role, Runnable work) {
        Thread thread = new Thread(null, work, "streamapp-agent-" + role, 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(ClassLoader.getSystemClassLoader());
        return thread;
    }
}
