package dev.streamapp.examples.counter.topology;

import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.api.RecordMetadata;

/** The output of every shape: its JSON form, and the key of a record without key. */
final class OutputRecord {
    /** A store needs a key, so all records without one count under the empty key. */
    static final Bytes NO_KEY = Bytes.wrap(new byte[0]);

    private OutputRecord() {}

    /** Give the key under which a record is counted. */
    static Bytes keyOf(Bytes key) {
        return key == null ? NO_KEY : key;
    }

    /** Give the output for the input record of this place. */
    static byte[] json(RecordMetadata input, long count) {
        return json(input.partition(), input.offset(), count);
    }

    /** Give the output for the input record of this partition and offset of the <em>input</em> topic. */
    static byte[] json(int partition, long offset, long count) {
        return ("{\"partition\":" + partition + ",\"offset\":" + offset + ",\"count\":" + count + "}")
                .getBytes(StandardCharsets.UTF_8);
    }
}
