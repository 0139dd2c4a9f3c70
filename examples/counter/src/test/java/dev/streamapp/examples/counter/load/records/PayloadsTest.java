package dev.streamapp.examples.counter.load.records;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.SplittableRandom;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;
import org.junit.jupiter.api.Test;

class PayloadsTest {
    @Test
    void aPayloadIsPrintableAndHasItsSize() {
        String payload = new String(new Payloads(new SplittableRandom(0), 190).next(), StandardCharsets.US_ASCII);
        assertEquals(190, payload.length());
        assertTrue(payload.matches("[A-Za-z0-9_-]+"), payload);
    }

    @Test
    void theSeedDecidesThePayloads() {
        Payloads one = new Payloads(new SplittableRandom(7), 50);
        Payloads other = new Payloads(new SplittableRandom(7), 50);
        assertArrayEquals(one.next(), other.next());
        assertArrayEquals(one.next(), other.next());
    }

    @Test
    void manyPayloadsCompressNoBetterThanTheirAlphabet() throws IOException {
        Payloads payloads = new Payloads(new SplittableRandom(0), 190);
        ByteArrayOutputStream compressed = new ByteArrayOutputStream();
        try (DeflaterOutputStream deflater = new DeflaterOutputStream(compressed, new Deflater(9))) {
            for (int i = 0; i < 1_000; i++) {
                deflater.write(payloads.next());
            }
        }
        // Six random bits in every byte of eight.
        assertTrue(compressed.size() >= 190_000 * 6 / 8, compressed.size() + " bytes");
    }
}
