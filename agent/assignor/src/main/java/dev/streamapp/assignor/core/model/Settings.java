package dev.streamapp.assignor.core.model;

/**
 * What the user may set.
 *
 * @param acceptableLag a copy that is at most so many records behind is ready
 * @param standbys standbys of every stateful task; learners come on top
 * @param balanceLearners how many learners there may be at one time for the sake of balance
 * @param leavingLearners how many learners there may be at one time for processes that leave
 * @param tolerance by how much the load per thread of two processes may differ, at least 1
 * @param levelsStandbys standbys go to emptier processes too; not where racks or tags decide about them
 * @param followUpMillis after how long the group looks again while learners are not ready
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
