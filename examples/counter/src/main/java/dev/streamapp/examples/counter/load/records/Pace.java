package dev.streamapp.examples.counter.load.records;

import java.time.Duration;

/**
 * When the n-th record of a steady load is due. Pure: the clock is the caller's.
 *
 * <p>Due times hang on the start, never on the record before: after a pause of the machine the load catches up, so that
 * the number of records offered does not depend on how well the other side took them.
 */
public record Pace(double recordsPerSecond) {
    private static final double NANOS_PER_SECOND = 1e9;

    /** Give the nanoseconds from the start until record {@code n}, counted from 0, is due. */
    public long due(long n) {
        return (long) (n * NANOS_PER_SECOND / recordsPerSecond);
    }

    /** Give how many records are due within a time from the start. */
    public long within(Duration duration) {
        return (long) Math.ceil(duration.toNanos() * recordsPerSecond / NANOS_PER_SECOND);
    }
}
