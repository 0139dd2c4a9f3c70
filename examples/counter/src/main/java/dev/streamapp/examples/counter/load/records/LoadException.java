package dev.streamapp.examples.counter.load.records;

/** A failure of a load command. The message gives the object, the cause and the next step in one line. */
public final class LoadException extends Exception {
    private static final long serialVersionUID = 1L;

    public LoadException(String message) {
        super(message);
    }

    public LoadException(String message, Throwable cause) {
        super(message + ": " + cause.getMessage(), cause);
    }
}
