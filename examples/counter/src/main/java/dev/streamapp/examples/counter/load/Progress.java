package dev.streamapp.examples.counter.load;

import java.time.Duration;
import java.util.Locale;

/** Formats the progress of a known amount of work. It is pure: the elapsed time is an argument. */
record Progress(String name, long total) {
    /** Give the line for {@code done} of the records after {@code elapsed}. */
    String line(long done, Duration elapsed) {
        double rate = rate(done, elapsed);
        long left = rate > 0 ? (long) Math.ceil((total - done) / rate) : 0;
        return String.format(
                Locale.ROOT,
                "%s: %,d of %,d (%d %%), %,.0f records/s, %d s left",
                name, done, total, 100 * done / total, rate, left);
    }

    /** Give the one line at the end. */
    static String sum(String name, long done, Duration elapsed) {
        return String.format(
                Locale.ROOT,
                "%s: %,d records in %.1f s, %,.1f records/s",
                name, done, seconds(elapsed), rate(done, elapsed));
    }

    private static double rate(long done, Duration elapsed) {
        return elapsed.isZero() ? 0 : done / seconds(elapsed);
    }

    private static double seconds(Duration duration) {
        return duration.toNanos() / 1e9;
    }
}
