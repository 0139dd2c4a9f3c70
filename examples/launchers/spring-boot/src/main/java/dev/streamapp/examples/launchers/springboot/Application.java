package dev.streamapp.examples.launchers.springboot;

import dev.streamapp.examples.launchers.counting.Counting;
import java.util.Map;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.kafka.annotation.EnableKafkaStreams;
import org.springframework.kafka.annotation.KafkaStreamsDefaultConfiguration;
import org.springframework.kafka.config.KafkaStreamsConfiguration;

/** The counting application; its configuration is in the environment. */
@SpringBootApplication(proxyBeanMethods = false)
@EnableKafkaStreams
public class Application {
    /** Run until SIGTERM. */
    public static void main(String[] args) {
        SpringApplication.run(Application.class, args);
    }

    /** Give Spring's factory of {@code KafkaStreams} its properties. */
    @Bean(name = KafkaStreamsDefaultConfiguration.DEFAULT_STREAMS_CONFIG_BEAN_NAME)
    public static KafkaStreamsConfiguration streams(
            @Value("${APPLICATION_ID}") String applicationId,
            @Value("${BOOTSTRAP_SERVERS}") String brokers,
            @Value("${STATE_DIR}") String stateDirectory) {
        return new KafkaStreamsConfiguration(Map.of(
                StreamsConfig.APPLICATION_ID_CONFIG, applicationId,
                StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers,
                StreamsConfig.STATE_DIR_CONFIG, stateDirectory));
    }

    /** Define what is counted, before Spring's factory builds the topology. */
    @Autowired
    public void define(
            StreamsBuilder builder,
            @Value("${INPUT_TOPIC}") String inputTopic,
            @Value("${OUTPUT_TOPIC}") String outputTopic) {
        Counting.define(builder, inputTopic, outputTopic);
    }
}
