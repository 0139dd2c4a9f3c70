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
 * The counter beside a table: a record is counted only if the table has a row for its key.
 *
 * <p>With {@code topology.optimization=all} the table has no changelog of its own: it is restored from the compacted
 * topic that it is read from. A row that is missing keeps its key's count too low for good, so a loss of the table shows
 * in the counts as a loss of the store does. Every input gets its output, row or no row.
 */
final class TableTopology {
    static final String STORE = "counts";
    static final String TABLE = "table";

    private TableTopology() {}

    static Topology build(String inputTopic, String tableTopic, String outputTopic) {
        StreamsBuilder builder = new StreamsBuilder();
        // Not named: by the name that Kafka Streams gives its processor the description tells a table from a store.
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

    /** Counts one record whose key has a row, and says how many there were, with the record's place in the input. */
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
