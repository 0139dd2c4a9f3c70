package dev.streamapp.examples.counter.settings;

import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads durations in the form of Kubernetes: a whole number and a unit. */
public final class Durations {
    /** What an error message gives as allowed. */
    public static final String ALLOWED = "a whole number with a unit, for example 500ms, 30s, 10m or 2h";

    private static final Pattern SHAPE = Pattern.compile("(\\d{1,9})(ms|s|m|h)");
    private static final Map<String, Duration> UNITS = Map.of(
            "ms", Duration.ofMillis(1),
            "s", Duration.ofSeconds(1),
            "m", Duration.ofMinutes(1),
            "h", Duration.ofHours(1));

    private Durations() {}

    /** Give the duration, or nothing if the text is none. */
    public static Optional<Duration> parse(String text) {
        Matcher matcher = SHAPE.matcher(text.strip());
        if (!matcher.matches()) {
            return Optional.empty();
        }
        return Optional.of(UNITS.get(matcher.group(2)).multipliedBy(Long.parseLong(matcher.group(1))));
    }
}
