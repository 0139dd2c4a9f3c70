package dev.streamapp.agent.apps;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Materialized;

/**
 * Counts the records of the topic {@code input} by key in the store {@code counts}. Settings are the arguments, each {@code name=value}. It obeys the
 * words {@code start}, {@code close}, {@code close-within}, {@code clean}, {@code heartbeats}, {@code properties}, {@code second} on its standard input, answers each with a line, and ends at the end of it.
 */
public final class CountingApp {

    private CountingApp() {
    }

    /** Runs until its standard input ends. */
    public static void main(String[] arguments) throws IOException {
        KafkaStreams streams = new KafkaStreams(topology(), properties(arguments));
        KafkaStreams second = null;
        System.out.println("constructed");
        BufferedReader words = new BufferedReader(new InputStreamReader(System.in));
        for (String word = words.readLine(); word != null; word = words.readLine()) {
            switch (word) {
                case "start" -> streams.start();
                case "close" -> streams.close();
                case "close-within" -> System.out.println("within " + streams.close(Duration.ofSeconds(20)));
                case "clean" -> streams.cleanUp();
                case "heartbeats" -> System.out.println("heartbeats " + heartbeats(streams));
                case "properties" -> System.out.println("properties " + properties());
                case "second" -> {
                    Properties other = properties(arguments);
                    other.put(StreamsConfig.APPLICATION_ID_CONFIG, other.get(StreamsConfig.APPLICATION_ID_CONFIG) + "-second");
                    second = new KafkaStreams(topology(), new StreamsConfig(other));
                }
                default -> { }
            }
            System.out.println("done " + word);
        }
        if (second != null) {
            second.close();
        }
        streams.close();
    }

    /** Counts the heartbeats of all consumers so far. */
    private static long heartbeats(KafkaStreams streams) {
        return streams.metrics().values().stream().filter(metric -> metric.metricName().name().equals("heartbeat-total"))
                .mapToLong(metric -> ((Double) metric.metricValue()).longValue()).sum();
    }

    /** Does with the system properties what applications do to show and keep them, and answers whether nothing was lost on the way. */
    private static String properties() throws IOException {
        Properties all = System.getProperties();
        StringWriter listed = new StringWriter();
        all.list(new PrintWriter(listed));
        ByteArrayOutputStream stored = new ByteArrayOutputStream();
        all.store(stored, "all");
        Properties read = new Properties();
        read.load(new ByteArrayInputStream(stored.toByteArray()));
        all.storeToXML(new ByteArrayOutputStream(), "all");
        for (Map.Entry<Object, Object> entry : all.entrySet()) {
            if (!(entry.getKey() instanceof String && entry.getValue() instanceof String)) {
                return "of another type: " + entry.getKey();
            }
        }
        boolean whole = read.equals(all) && all.stringPropertyNames().size() == all.size() && listed.toString().contains("java.version=");
        return whole ? "whole" : "not whole";
    }

    private static Properties properties(String[] arguments) {
        Properties properties = new Properties();
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        for (String argument : arguments) {
            int at = argument.indexOf('=');
            properties.put(argument.substring(0, at), argument.substring(at + 1));
        }
        return properties;
    }

    private static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("input").groupByKey().count(Materialized.as("counts"));
        return builder.build();
    }
}
