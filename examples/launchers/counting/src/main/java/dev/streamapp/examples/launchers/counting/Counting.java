package dev.streamapp.examples.launchers.counting;

import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Counts records per key, and answers each with its place in the input and the count of its key. */
public final class Counting {
    private static final String STORE = "counts";

    private Counting() {}

    /** Add the counting to a topology that is being built. */
    public static void define(StreamsBuilder builder, String inputTopic, String outputTopic) {
        builder.addStateStore(
                Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(STORE), Serdes.Bytes(), Serdes.Long())
                        .withCachingDisabled());
        builder.stream(inputTopic, Consumed.with(Serdes.Bytes(), Serdes.ByteArray()))
                .process(Count::new, STORE)
                .to(outputTopic, Produced.with(Serdes.Bytes(), Serdes.ByteArray()));
    }

    private static final class Count extends ContextualProcessor<Bytes, byte[], Bytes, byte[]> {
        @Override
        public void process(Record<Bytes, byte[]> input) {
            RecordMetadata place = context().recordMetadata().orElseThrow();
            KeyValueStore<Bytes, Long> counts = context().getStateStore(STORE);
            Long before = counts.get(input.key());
            long count = before == null ? 1 : before + 1;
            counts.put(input.key(), count);
            String answer = "{\"partition\":%d,\"offset\":%d,\"count\":%d}"
                    .formatted(place.partition(), place.offset(), count);
            context().forward(input.withValue(answer.getBytes(StandardCharsets.UTF_8)));
        }
    }
}
