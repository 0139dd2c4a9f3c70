package dev.streamapp.examples.counter.load.records;

import java.util.ArrayDeque;
import java.util.Queue;

/**
 * How long one input partition waited for outputs, from the broker's append times alone.
 *
 * <p>An input waits from its append until an output appears for it or for a later offset. Inputs and outputs are each
 * given in the order of their offsets; an output may be seen before its input.
 */
public final class Waits {
    private final Queue<Record> unanswered = new ArrayDeque<>();
    private final Queue<Record> early = new ArrayDeque<>();
    private long newestInput = -1;
    private long lastOutputMs = Long.MIN_VALUE;
    private long answered = -1;
    private long longestMs;
    private long passed;

    private record Record(long offset, long timeMs) {}

    /** Take an input record. */
    public void input(long offset, long timeMs) {
        newestInput = offset;
        unanswered.add(new Record(offset, timeMs));
        while (!early.isEmpty() && early.element().offset() <= newestInput) {
            Record output = early.remove();
            answer(output.offset(), output.timeMs());
        }
    }

    /** Take an output for the input of this offset; a repeated one ends a wait too. */
    public void output(long inputOffset, long timeMs) {
        if (inputOffset > newestInput) {
            early.add(new Record(inputOffset, timeMs));
        } else {
            answer(inputOffset, timeMs);
        }
    }

    private void answer(long inputOffset, long timeMs) {
        longestMs = Math.max(longestMs, openMs(timeMs));
        lastOutputMs = timeMs;
        while (!unanswered.isEmpty() && unanswered.element().offset() <= inputOffset) {
            passed += unanswered.remove().offset() < inputOffset ? 1 : 0;
        }
        answered = Math.max(answered, inputOffset);
    }

    /** Give the longest wait that ended since the last call, in milliseconds. */
    public long takeLongestMs() {
        long taken = longestMs;
        longestMs = 0;
        return taken;
    }

    /** Give how long the oldest waiting input has waited in this silence, in milliseconds; 0 if none waits. */
    public long openMs(long nowMs) {
        return unanswered.isEmpty() ? 0 : Math.max(0, nowMs - Math.max(unanswered.element().timeMs(), lastOutputMs));
    }

    /** Give how many inputs were passed over: a later one was answered and these never were. */
    public long passed() {
        return passed;
    }

    /** Give how many inputs were answered, those that were passed over included. */
    public long answered() {
        return answered + 1;
    }
}
