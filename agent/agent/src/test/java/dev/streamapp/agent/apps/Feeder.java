package dev.streamapp.agent.apps;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Creates the topic {@code input} with as many partitions as the second argument says, and writes the third's number of records to it. */
public final class Feeder {

    private Feeder() {
    }

    /** Takes the broker's address, the number of partitions and the number of records. */
    public static void main(String[] arguments) throws ExecutionException, InterruptedException {
        Map<String, Object> broker = Map.of("bootstrap.servers", arguments[0]);
        int partitions = Integer.parseInt(arguments[1]);
        try (Admin admin = Admin.create(broker)) {
            if (!admin.listTopics().names().get().contains("input")) {
                admin.createTopics(List.of(new NewTopic("input", partitions, (short) 1))).all().get();
            }
        }
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(broker, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < Integer.parseInt(arguments[2]); i++) {
                producer.send(new ProducerRecord<>("input", i % partitions, "key-" + i, "value"));
            }
        }
        System.out.println("fed");
    }
}
