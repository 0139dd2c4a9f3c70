package dev.streamapp.examples.counter.topology;

import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;

/**
 * The counter beside a table: it counts a record only if the table has a row for its key.
 *
 * <p>With {@code topology.optimization=all} the table has no changelog of its own. Its restoration reads the compacted
 * source topic. A missing row keeps the count of its key too low, so the counts show a loss of the table like a loss of
 * the store. Every input record gets its output, with or without a row.
 */
final class TableTopology {
    static final String STORE = "counts";
    static final String TABLE = "table";

    private TableTopology() {}

    static Topology build(String inputTopic, String tableTopic, String outputTopic) {
        StreamsBuilder builder = new StreamsBuilder();
        // Not named: the generated processor name distinguishes a table from a store in the description.
        builder.table(
                tableTopic,
                Consumed.with(Serdes.Bytes(), Serdes.ByteArray()),
                Materialized.<Bytes, byte[]>as(Stores.persistentTimestampedKeyValueStore(TABLE)).withCachingDisabled());
        builder.addStateStore(
                Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(STORE), Serdes.Bytes(), Tally.serde())
                        .withCachingDisabled());
        builder.stream(inputTopic, Consumed.with(Serdes.Bytes(), Serdes.ByteArray()))
                .process(Count::new, Named.as("count"), STORE, TABLE)
                .to(outputTopic, Produced.with(Serdes.Bytes(), Serdes.ByteArray()));
        Properties optimised = new Properties();
        optimised.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        return builder.build(optimised);
    }

    /** Counts a record whose key has a row, and outputs the count with the record's position in the input. */
    private static final class Count extends ContextualProcessor<Bytes, byte[], Bytes, byte[]> {
        private KeyValueStore<Bytes, Tally> counts;
        private TimestampedKeyValueStore<Bytes, byte[]> table;

        @Override
        public void init(ProcessorContext<Bytes, byte[]> context) {
            super.init(context);
            counts = context.getStateStore(STORE);
            table = context.getStateStore(TABLE);
        }

        @Override
        public void process(Record<Bytes, byte[]> input) {
            RecordMetadata place = context().recordMetadata().orElseThrow();
            Bytes key = OutputRecord.keyOf(input.key());
            Tally before = counts.get(key);
            long count = before == null ? 0 : before.count();
            if (table.get(key) != null) {
                Tally tally = Tally.after(before, input.value());
                counts.put(key, tally);
                count = tally.count();
            }
            context().forward(input.withValue(OutputRecord.json(place, count)));
        }
    }
}
