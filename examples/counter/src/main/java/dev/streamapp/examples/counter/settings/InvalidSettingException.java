package dev.streamapp.examples.counter.settings;

/**
 * A variable or option with an invalid value. The message gives its name, the cause and the allowed values in one line.
 *
 * <p>The main class prints the message as it is, and the process ends with {@link #EXIT_CODE}.
 */
public final class InvalidSettingException extends Exception {
    /** The exit code of a process that was started with a wrong setting; the same as picocli's for wrong options. */
    public static final int EXIT_CODE = 2;

    private static final long serialVersionUID = 1L;

    /**
     * @param variable the name of the environment variable
     * @param cause what is wrong, with the value where it is no secret
     * @param allowed what would be accepted
     */
    public InvalidSettingException(String variable, String cause, String allowed) {
        super(variable + ": " + cause + "; allowed: " + allowed);
    }
}
