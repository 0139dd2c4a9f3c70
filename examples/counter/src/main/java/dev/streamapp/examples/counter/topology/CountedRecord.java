package dev.streamapp.examples.counter.topology;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/**
 * An input record in the repartition topic, with its source position and its counts so far.
 *
 * <p>As bytes: partition (4), offset (8), the two counts (8 each), length of the key or −1 (4), the key, the payload;
 * all numbers big-endian.
 *
 * @param partition the input record's partition
 * @param offset the input record's offset
 * @param count the count of the key in the store {@code counts}
 * @param total the count of the key in the store {@code totals}
 * @param key the input record's key, or null; immutable by convention
 * @param payload the input record's value, empty for a record without value; immutable by convention
 */
record CountedRecord(int partition, long offset, long count, long total, byte[] key, byte[] payload) {
    private static final int NO_KEY = -1;
    private static final int NUMBERS = 2 * Integer.BYTES + 3 * Long.BYTES;

    static Serde<CountedRecord> serde() {
        return Serdes.serdeFrom((topic, counted) -> toBytes(counted), (topic, bytes) -> fromBytes(bytes));
    }

    private static byte[] toBytes(CountedRecord counted) {
        if (counted == null) {
            return null;
        }
        byte[] key = counted.key == null ? new byte[0] : counted.key;
        return ByteBuffer.allocate(NUMBERS + key.length + counted.payload.length)
                .putInt(counted.partition)
                .putLong(counted.offset)
                .putLong(counted.count)
                .putLong(counted.total)
                .putInt(counted.key == null ? NO_KEY : key.length)
                .put(key)
                .put(counted.payload)
                .array();
    }

    private static CountedRecord fromBytes(byte[] bytes) {
        if (bytes == null) {
            return null;
        }
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        try {
            int partition = buffer.getInt();
            long offset = buffer.getLong();
            long count = buffer.getLong();
            long total = buffer.getLong();
            int length = buffer.getInt();
            byte[] key = length == NO_KEY ? null : take(buffer, length);
            return new CountedRecord(partition, offset, count, total, key, take(buffer, buffer.remaining()));
        } catch (BufferUnderflowException e) {
            throw new SerializationException("a counted record ends early, after " + bytes.length + " bytes", e);
        }
    }

    private static byte[] take(ByteBuffer buffer, int length) {
        if (length < 0 || length > buffer.remaining()) {
            throw new SerializationException("a counted record has no key of " + length + " bytes");
        }
        byte[] taken = new byte[length];
        buffer.get(taken);
        return taken;
    }
}
