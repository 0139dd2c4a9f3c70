package dev.streamapp.examples.counter.load.clients;

import dev.streamapp.examples.counter.load.records.LoadException;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;

/** Sends records and stops at the first record that a broker refuses: a lost record is a failure of the load. */
public final class Sender implements AutoCloseable {
    private final Producer<byte[], byte[]> producer;
    private final String topic;
    private final AtomicReference<Exception> refused = new AtomicReference<>();

    public Sender(Producer<byte[], byte[]> producer, String topic) {
        this.producer = producer;
        this.topic = topic;
    }

    /** Hand a record to the producer; waits only while the producer's buffer is full. */
    public void send(int partition, byte[] key, byte[] value) throws LoadException {
        check();
        try {
            producer.send(new ProducerRecord<>(topic, partition, key, value), (metadata, exception) -> {
                if (exception != null) {
                    refused.compareAndSet(null, exception);
                }
            });
        } catch (KafkaException e) {
            throw new LoadException("a record for topic " + topic + " could not be sent", e);
        }
    }

    /** Wait until a broker has every record that was sent. */
    public void flush() throws LoadException {
        producer.flush();
        check();
    }

    private void check() throws LoadException {
        Exception exception = refused.get();
        if (exception != null) {
            throw new LoadException("a record for topic " + topic + " was lost", exception);
        }
    }

    @Override
    public void close() {
        producer.close();
    }
}
