package dev.streamapp.examples.counter.load.clients;

import dev.streamapp.examples.counter.load.records.LoadException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import picocli.CommandLine.Option;

/** The options of the connection to the brokers, and the clients made from them. */
public final class Connection {
    @Option(
            names = "--bootstrap-servers",
            paramLabel = "HOST:PORT",
            defaultValue = "${env:BOOTSTRAP_SERVERS}",
            required = true,
            description = "Brokers, several with commas between. Default: the variable BOOTSTRAP_SERVERS.")
    private String bootstrapServers;

    @Option(
            names = "--command-config",
            paramLabel = "FILE",
            description = "Properties of Kafka's clients, for TLS and SASL for example, as Kafka's tools take them; or a"
                    + " folder with a file for each property, as a mounted Secret is.")
    private Path commandConfig;

    public Topics topics() throws LoadException {
        try {
            return new Topics(Admin.create(properties(Map.of())));
        } catch (KafkaException e) {
            throw unusable(e);
        }
    }

    /** Open a producer that waits for all replicas and writes no record twice; the file may change {@code tuning}. */
    public Producer<byte[], byte[]> producer(Map<String, Object> tuning) throws LoadException {
        Properties properties = properties(tuning);
        properties.put(ProducerConfig.ACKS_CONFIG, "all");
        properties.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, true);
        try {
            return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
        } catch (KafkaException e) {
            throw unusable(e);
        }
    }

    /** Open a consumer that is in no group and sees what is committed only. */
    public Consumer<byte[], byte[]> consumer() throws LoadException {
        Properties properties = properties(Map.of());
        properties.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        properties.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        try {
            return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        } catch (KafkaException e) {
            throw unusable(e);
        }
    }

    private Properties properties(Map<String, Object> tuning) throws LoadException {
        Properties properties = new Properties();
        properties.putAll(tuning);
        if (commandConfig != null) {
            try {
                read(commandConfig, properties);
            } catch (IOException e) {
                throw new LoadException("--command-config " + commandConfig + " cannot be read (" + e + ")");
            }
        }
        properties.put(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers);
        return properties;
    }

    /** Read a file of properties, or a folder whose files are named like the properties that they hold. */
    static void read(Path config, Properties properties) throws IOException {
        if (!Files.isDirectory(config)) {
            try (InputStream file = Files.newInputStream(config)) {
                properties.load(file);
            }
            return;
        }
        try (DirectoryStream<Path> files = Files.newDirectoryStream(config, Files::isRegularFile)) {
            for (Path file : files) {
                properties.put(file.getFileName().toString(), Files.readString(file).strip());
            }
        }
    }

    private LoadException unusable(KafkaException exception) {
        Throwable cause = exception.getCause() == null ? exception : exception.getCause();
        return new LoadException("brokers " + bootstrapServers + " cannot be used", cause);
    }
}
