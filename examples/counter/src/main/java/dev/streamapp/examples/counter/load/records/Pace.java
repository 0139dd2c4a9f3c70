package dev.streamapp.examples.counter.load.records;

import java.time.Duration;

/**
 * The due time of the n-th record of a steady load. It is pure: the caller has the clock.
 *
 * <p>Due times depend on the start, never on the record before. After a pause of the machine the load catches up,
 * so the number of records does not depend on the speed of the brokers.
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
