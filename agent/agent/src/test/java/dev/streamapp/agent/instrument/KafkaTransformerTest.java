package dev.streamapp.agent.instrument;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.streamapp.agent.meeting.Meeting;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Each advice finds its method in the release of Kafka Streams that the tests have. */
class KafkaTransformerTest {

    private static byte[] transformed(String name) throws IOException {
        try (InputStream in = KafkaTransformerTest.class.getClassLoader().getResourceAsStream(name + ".class")) {
            return new KafkaTransformer().transform(KafkaTransformerTest.class.getClassLoader(), name, null, null, in.readAllBytes());
        }
    }

    @ParameterizedTest
    @CsvSource({
        "org/apache/kafka/streams/KafkaStreams, cleaned", "org/apache/kafka/streams/StreamsConfig, consumerConfigs",
        "org/apache/kafka/common/utils/Utils, loadClass", "org/apache/kafka/streams/processor/internals/AbstractTask, task",
        "org/apache/kafka/streams/processor/internals/StreamsPartitionAssignor, assignment", "org/apache/kafka/clients/consumer/KafkaConsumer, poll",
        "org/apache/kafka/clients/producer/KafkaProducer, producer", "org/apache/kafka/clients/producer/KafkaProducer, initTransactions",
    })
    void theCodeOfItsAdviceIsInTheClass(String name, String event) throws IOException {
        byte[] bytes = transformed(name);
        assertNotNull(bytes);
        String constants = new String(bytes, StandardCharsets.ISO_8859_1);
        // The advice is inlined only where its method is found.
        assertTrue(constants.contains(Meeting.NAME), name);
        assertTrue(constants.contains(event), name);
    }

    @Test
    void otherClassesStayAsTheyAre() throws IOException {
        assertNull(transformed("org/apache/kafka/streams/Topology"));
    }
}
