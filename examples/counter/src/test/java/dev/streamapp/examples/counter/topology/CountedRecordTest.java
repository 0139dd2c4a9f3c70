package dev.streamapp.examples.counter.topology;

import static dev.streamapp.examples.counter.topology.ShapeDriver.bytes;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.kafka.common.errors.SerializationException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class CountedRecordTest {
    private static byte[] written(CountedRecord counted) {
        return CountedRecord.serde().serializer().serialize("", counted);
    }

    private static CountedRecord read(byte[] bytes) {
        return CountedRecord.serde().deserializer().deserialize("", bytes);
    }

    @ParameterizedTest
    @CsvSource(value = {"key, payload", "'', ''", "NULL, payload", "key, ''"}, nullValues = "NULL")
    void whatIsWrittenIsRead(String key, String payload) {
        byte[] keyBytes = key == null ? null : bytes(key);
        CountedRecord read = read(written(new CountedRecord(5, 1L << 40, 3, 4, keyBytes, bytes(payload))));
        assertEquals(5, read.partition());
        assertEquals(1L << 40, read.offset());
        assertEquals(3, read.count());
        assertEquals(4, read.total());
        assertArrayEquals(keyBytes, read.key());
        assertArrayEquals(bytes(payload), read.payload());
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 31, 34})
    void bytesThatEndEarlyAreRefused(int length) {
        byte[] whole = written(new CountedRecord(5, 7, 3, 4, bytes("key"), bytes("")));
        assertThrows(SerializationException.class, () -> read(Arrays.copyOf(whole, length)));
    }

    @Test
    void aKeyOfNegativeLengthIsRefused() {
        byte[] whole = written(new CountedRecord(5, 7, 3, 4, bytes("key"), bytes("")));
        ByteBuffer.wrap(whole).putInt(28, -2);
        assertThrows(SerializationException.class, () -> read(whole));
    }
}
