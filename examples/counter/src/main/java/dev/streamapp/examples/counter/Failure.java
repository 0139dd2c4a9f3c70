package dev.streamapp.examples.counter;

/** A command of the load that cannot do its work: the object, the cause and the next step, in one line. */
final class Failure extends Exception {
    private static final long serialVersionUID = 1L;

    Failure(String message) {
        super(message);
    }

    Failure(String message, Throwable cause) {
        super(message + ": " + cause.getMessage(), cause);
    }
}
