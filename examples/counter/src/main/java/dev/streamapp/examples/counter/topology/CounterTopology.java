package dev.streamapp.examples.counter.topology;

import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.BytesDeserializer;
import org.apache.kafka.common.serialization.BytesSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * The counter as a topology: one source, one processor with one persistent store, one sink.
 *
 * <p>It uses the Processor API for two reasons. Each input record needs exactly one output record, which the cache of a
 * DSL store would merge. And the output needs the partition and offset of the input record.
 */
final class CounterTopology {
    /** The store's name; the changelog is {@code <application.id>-counts-changelog}. */
    static final String STORE = "counts";

    private CounterTopology() {}

    static Topology build(String inputTopic, String outputTopic) {
        return new Topology()
                .addSource("input", new BytesDeserializer(), new ByteArrayDeserializer(), inputTopic)
                .addProcessor("count", Count::new, "input")
                .addStateStore(
                        Stores.keyValueStoreBuilder(
                                        Stores.persistentKeyValueStore(STORE), Serdes.Bytes(), Tally.serde())
                                .withCachingDisabled(),
                        "count")
                .addSink("output", outputTopic, new BytesSerializer(), new ByteArraySerializer(), "count");
    }

    /** Counts one record, and outputs the count with the record's position in the input topic. */
    private static final class Count extends ContextualProcessor<Bytes, byte[], Bytes, byte[]> {
        private KeyValueStore<Bytes, Tally> counts;

        @Override
        public void init(ProcessorContext<Bytes, byte[]> context) {
            super.init(context);
            counts = context.getStateStore(STORE);
        }

        @Override
        public void process(Record<Bytes, byte[]> input) {
            // Present for every record that comes from a topic; only punctuators, which are not used here, have none.
            RecordMetadata place = context().recordMetadata().orElseThrow();
            Bytes key = OutputRecord.keyOf(input.key());
            Tally tally = Tally.after(counts.get(key), input.value());
            counts.put(key, tally);
            context().forward(input.withValue(OutputRecord.json(place, tally.count())));
        }
    }
}
