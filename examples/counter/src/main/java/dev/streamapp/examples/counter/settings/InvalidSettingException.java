package dev.streamapp.examples.counter.settings;

/**
 * A variable or option that cannot be used: says which one, why, and what is allowed, in one line.
 *
 * <p>Raised while settings are read and printed by the main class as it is; the process then ends with
 * {@link #EXIT_CODE}.
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
