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
 * The counter in two sub-topologies: one counts in two stores and turns every key round, so that most records change
 * their partition; the other counts again under the turned key, in a store of its own, and answers.
 *
 * <p>All three stores count the same thing. While no state is lost and nothing is counted twice they agree, and the
 * answer is what they agree on; see {@link #agreed}.
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
     * Give the count to answer with when three stores have counted.
     *
     * <p>A store that lost its state is behind for good, so the smallest shows a loss. One that counted twice is ahead,
     * which at-least-once allows; under exactly-once it is as wrong as a loss, and what the stores do not agree on is 0.
     */
    static long agreed(boolean exactlyOnce, long count, long total, long again) {
        if (exactlyOnce && (count != total || count != again)) {
            return 0;
        }
        return Math.min(count, Math.min(total, again));
    }

    /** Turn a key round: another key for every key, and the same again when turned once more. */
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

    /** Counts one record in two stores and hands it on under its turned key, with its place in the input topic. */
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

    /** Counts the record once more and answers, under the key that the input record had. */
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
