package dev.streamapp.examples.counter.topology;

import java.nio.ByteBuffer;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/**
 * The value of the store per key: the number of records, and the payload of the last one.
 *
 * <p>The payload gives the state and its changelog a realistic size.
 * On disk and in the changelog: the count as eight bytes, big-endian, then the payload.
 *
 * @param count records of this key so far, at least 1
 * @param payload the value of the last record, empty for a record without value; immutable by convention
 */
record Tally(long count, byte[] payload) {
    private static final byte[] NO_PAYLOAD = {};

    /** Give the tally after one more record on top of {@code previous}, which is null for a key's first record. */
    static Tally after(Tally previous, byte[] payload) {
        long seen = previous == null ? 0 : previous.count;
        return new Tally(seen + 1, payload == null ? NO_PAYLOAD : payload);
    }

    static Serde<Tally> serde() {
        return Serdes.serdeFrom((topic, tally) -> toBytes(tally), (topic, bytes) -> fromBytes(bytes));
    }

    private static byte[] toBytes(Tally tally) {
        if (tally == null) {
            return null;
        }
        return ByteBuffer.allocate(Long.BYTES + tally.payload.length).putLong(tally.count).put(tally.payload).array();
    }

    private static Tally fromBytes(byte[] bytes) {
        if (bytes == null) {
            return null;
        }
        if (bytes.length < Long.BYTES) {
            throw new SerializationException("a tally has at least " + Long.BYTES + " bytes, this one " + bytes.length);
        }
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        long count = buffer.getLong();
        byte[] payload = new byte[buffer.remaining()];
        buffer.get(payload);
        return new Tally(count, payload);
    }
}
