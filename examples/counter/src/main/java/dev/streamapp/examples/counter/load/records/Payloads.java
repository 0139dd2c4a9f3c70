package dev.streamapp.examples.counter.load.records;

import java.nio.charset.StandardCharsets;
import java.util.SplittableRandom;

/** Makes printable values that compress badly: random letters and digits, repeatable by seed. */
public final class Payloads {
    private static final byte[] ALPHABET =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".getBytes(StandardCharsets.US_ASCII);
    private static final int BITS_PER_CHARACTER = 6;
    private static final int CHARACTERS_PER_DRAW = Long.SIZE / BITS_PER_CHARACTER;

    private final SplittableRandom random;
    private final int bytes;

    public Payloads(SplittableRandom random, int bytes) {
        this.random = random;
        this.bytes = bytes;
    }

    public byte[] next() {
        byte[] payload = new byte[bytes];
        long bits = 0;
        for (int i = 0; i < bytes; i++) {
            // One draw serves ten characters: at full speed the load spends its time in the producer, not here.
            bits = i % CHARACTERS_PER_DRAW == 0 ? random.nextLong() : bits >>> BITS_PER_CHARACTER;
            payload[i] = ALPHABET[(int) (bits & (ALPHABET.length - 1))];
        }
        return payload;
    }
}
