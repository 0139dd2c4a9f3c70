package dev.streamapp.examples.counter.topology;

import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * The counter in two sub-topologies. The first counts in two stores and reverses every key, so that most records change
 * their partition. The second counts again under the reversed key, in its own store, and writes the output.
 *
 * <p>All three stores count the same records. Without a loss and without duplicates they agree, and the output has that
 * count; see {@link #agreed}.
 */
final class StoresTopology {
    static final String COUNTS = "counts";
    static final String TOTALS = "totals";
    static final String AGAIN = "again";
    /** The repartition topic is {@code <application.id>-turned-repartition}. */
    static final String TURNED = "turned";

    private StoresTopology() {}

    static Topology build(String inputTopic, String outputTopic) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(inputTopic, Consumed.with(Serdes.Bytes(), Serdes.ByteArray()))
                .process(supplier(Count::new, tallies(COUNTS), totals()), Named.as("count"))
                .repartition(Repartitioned.<Bytes, CountedRecord>as(TURNED)
                        .withKeySerde(Serdes.Bytes())
                        .withValueSerde(CountedRecord.serde()))
                .process(supplier(CountAgain::new, tallies(AGAIN)), Named.as("count-again"))
                .to(outputTopic, Produced.with(Serdes.Bytes(), Serdes.ByteArray()));
        return builder.build();
    }

    /**
     * Give the count of the output from the counts of the three stores.
     *
     * <p>A store that lost its state stays behind, so the smallest count shows a loss. A store that counted twice is
     * ahead, which at-least-once allows. Under exactly-once any difference is an error, and the count is 0.
     */
    static long agreed(boolean exactlyOnce, long count, long total, long again) {
        if (exactlyOnce && (count != total || count != again)) {
            return 0;
        }
        return Math.min(count, Math.min(total, again));
    }

    /** Reverse the bytes of a key. Different keys stay different, and a second reversal gives the key back. */
    private static Bytes turned(Bytes key) {
        byte[] turned = new byte[key.get().length];
        for (int i = 0; i < turned.length; i++) {
            turned[i] = key.get()[turned.length - 1 - i];
        }
        return Bytes.wrap(turned);
    }

    private static StoreBuilder<KeyValueStore<Bytes, Tally>> tallies(String name) {
        return Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(name), Serdes.Bytes(), Tally.serde())
                .withCachingDisabled();
    }

    private static StoreBuilder<KeyValueStore<Bytes, Long>> totals() {
        return Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(TOTALS), Serdes.Bytes(), Serdes.Long())
                .withCachingDisabled();
    }

    private static <K, V, L, W> ProcessorSupplier<K, V, L, W> supplier(
            ProcessorSupplier<K, V, L, W> processors, StoreBuilder<?>... stores) {
        return new ProcessorSupplier<>() {
            @Override
            public Processor<K, V, L, W> get() {
                return processors.get();
            }

            @Override
            public Set<StoreBuilder<?>> stores() {
                return Set.of(stores);
            }
        };
    }

    /** Counts one record in two stores and forwards it under its reversed key, with its position in the input topic. */
    private static final class Count extends ContextualProcessor<Bytes, byte[], Bytes, CountedRecord> {
        private KeyValueStore<Bytes, Tally> counts;
        private KeyValueStore<Bytes, Long> totals;

        @Override
        public void init(ProcessorContext<Bytes, CountedRecord> context) {
            super.init(context);
            counts = context.getStateStore(COUNTS);
            totals = context.getStateStore(TOTALS);
        }

        @Override
        public void process(Record<Bytes, byte[]> input) {
            RecordMetadata place = context().recordMetadata().orElseThrow();
            Bytes key = OutputRecord.keyOf(input.key());
            Tally tally = Tally.after(counts.get(key), input.value());
            counts.put(key, tally);
            Long before = totals.get(key);
            long total = before == null ? 1 : before + 1;
            totals.put(key, total);
            byte[] bytes = input.key() == null ? null : input.key().get();
            CountedRecord counted =
                    new CountedRecord(place.partition(), place.offset(), tally.count(), total, bytes, tally.payload());
            context().forward(input.withKey(turned(key)).withValue(counted));
        }
    }

    /** Counts the record once more and writes the output under the key of the input record. */
    private static final class CountAgain extends ContextualProcessor<Bytes, CountedRecord, Bytes, byte[]> {
        private KeyValueStore<Bytes, Tally> again;
        private boolean exactlyOnce;

        @Override
        public void init(ProcessorContext<Bytes, byte[]> context) {
            super.init(context);
            again = context.getStateStore(AGAIN);
            Map<String, Object> settings = context.appConfigs();
            exactlyOnce = StreamsConfig.EXACTLY_ONCE_V2.equals(settings.get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG));
        }

        @Override
        public void process(Record<Bytes, CountedRecord> record) {
            CountedRecord counted = record.value();
            Tally tally = Tally.after(again.get(record.key()), counted.payload());
            again.put(record.key(), tally);
            long count = agreed(exactlyOnce, counted.count(), counted.total(), tally.count());
            Bytes key = counted.key() == null ? null : Bytes.wrap(counted.key());
            context().forward(record.withKey(key).withValue(OutputRecord.json(counted.partition(), counted.offset(), count)));
        }
    }
}
