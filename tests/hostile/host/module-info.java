/** The application as a module: the JVM resolves what it requires and nothing else. */
module host {
    requires com.fasterxml.jackson.databind;
    requires kafka.clients;
    requires kafka.streams;
}
