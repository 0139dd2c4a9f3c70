package dev.streamapp.examples.counter.topology;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.apache.kafka.common.errors.SerializationException;
import org.junit.jupiter.api.Test;

class TallyTest {
    @Test
    void theBytesAreTheCountAndThenThePayload() {
        byte[] bytes = Tally.serde().serializer().serialize("", new Tally(258, new byte[] {7, 8}));
        assertArrayEquals(new byte[] {0, 0, 0, 0, 0, 0, 1, 2, 7, 8}, bytes);
    }

    @Test
    void whatWasWrittenIsReadBack() {
        byte[] bytes = Tally.serde().serializer().serialize("", new Tally(Long.MAX_VALUE, new byte[] {1, 2, 3}));
        Tally read = Tally.serde().deserializer().deserialize("", bytes);
        assertEquals(Long.MAX_VALUE, read.count());
        assertArrayEquals(new byte[] {1, 2, 3}, read.payload());
    }

    @Test
    void bytesThatAreNoTallyAreRefused() {
        SerializationException exception = assertThrows(
                SerializationException.class, () -> Tally.serde().deserializer().deserialize("", new byte[3]));
        assertEquals("a tally has at least 8 bytes, this one 3", exception.getMessage());
    }
}
