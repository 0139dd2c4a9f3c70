package dev.streamapp.examples.counter.topology;

import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.BytesDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * The counter with a second sub-topology, which counts what the first one has written and writes nothing itself.
 *
 * <p>The first sub-topology is that of {@link CounterTopology}, with its number: so this is a new version of that
 * application which has one sub-topology more.
 */
final class EchoTopology {
    /** The store's name; the changelog is {@code <application.id>-echoes-changelog}. */
    static final String STORE = "echoes";

    private EchoTopology() {}

    static Topology build(String inputTopic, String outputTopic) {
        return CounterTopology.build(inputTopic, outputTopic)
                .addSource("written", new BytesDeserializer(), new ByteArrayDeserializer(), outputTopic)
                .addProcessor("echo", Echo::new, "written")
                .addStateStore(
                        Stores.keyValueStoreBuilder(
                                        Stores.persistentKeyValueStore(STORE), Serdes.Bytes(), Serdes.Long())
                                .withCachingDisabled(),
                        "echo");
    }

    /** Counts the records of each key; one without a key is counted under an empty one. */
    private static final class Echo implements Processor<Bytes, byte[], Void, Void> {
        private KeyValueStore<Bytes, Long> echoes;

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            echoes = context.getStateStore(STORE);
        }

        @Override
        public void process(Record<Bytes, byte[]> written) {
            Bytes key = OutputRecord.keyOf(written.key());
            Long before = echoes.get(key);
            echoes.put(key, before == null ? 1 : before + 1);
        }
    }
}
