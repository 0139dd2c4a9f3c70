package dev.streamapp.assignor.core.model;

/**
 * The user's settings.
 *
 * @param acceptableLag the largest lag of a ready copy, in records
 * @param standbys the standbys of every stateful task; learners come on top
 * @param balanceLearners the limit of concurrent learners for balance
 * @param leavingLearners the limit of concurrent learners for leaving processes
 * @param tolerance the accepted difference of the load per thread of two processes, at least 1
 * @param levelsStandbys whether standbys move to emptier processes too; not if racks or tags place them
 * @param followUpMillis the interval of follow-ups while learners are not ready
 */
public record Settings(
    long acceptableLag, int standbys, int balanceLearners, int leavingLearners, int tolerance,
    boolean levelsStandbys, long followUpMillis) {

    /** The defaults of Kafka and of this assignor. */
    public static final Settings DEFAULT = new Settings(10_000, 0, 2, Integer.MAX_VALUE, 1, true, 10_000);

    private static final long LONGEST = 3_600_000;

    /** Brings every number into its bounds. */
    public Settings {
        acceptableLag = Math.max(0, acceptableLag);
        standbys = Math.max(0, standbys);
        balanceLearners = Math.max(1, balanceLearners);
        leavingLearners = Math.max(1, leavingLearners);
        tolerance = Math.max(1, Math.min(tolerance, Task.HEAVIEST));
        followUpMillis = Math.max(100, Math.min(followUpMillis, LONGEST));
    }
}
