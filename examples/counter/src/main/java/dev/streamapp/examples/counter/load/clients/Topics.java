package dev.streamapp.examples.counter.load.clients;

import dev.streamapp.examples.counter.load.records.LoadException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.function.Predicate;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** Reads, creates and deletes topics. No other class of the load uses the admin client. */
public final class Topics implements AutoCloseable {
    /** How long a topic that was just created may take until a broker shows it. */
    private static final Duration VISIBLE_WITHIN = Duration.ofSeconds(30);

    private static final Duration BETWEEN_LOOKS = Duration.ofMillis(100);

    private final Admin admin;

    Topics(Admin admin) {
        this.admin = admin;
    }

    /** Give the number of partitions of a topic that must exist. */
    public int partitions(String topic) throws LoadException, InterruptedException {
        return look(topic)
                .orElseThrow(
                        () -> new LoadException("topic " + topic + " does not exist; create it with the command topics"));
    }

    /**
     * Create the topic unless it is there, and return once a broker shows it with its partitions.
     *
     * @return whether this call created it
     * @throws Failure if a topic of that name has another number of partitions; it is left as it is
     */
    public boolean ensure(NewTopic wanted) throws LoadException, InterruptedException {
        boolean created = create(wanted);
        int partitions = awaitVisible(wanted.name());
        if (partitions != wanted.numPartitions()) {
            throw new LoadException("topic " + wanted.name() + " has " + partitions + " partitions, not "
                    + wanted.numPartitions() + "; delete it, or give --partitions " + partitions);
        }
        return created;
    }

    private boolean create(NewTopic wanted) throws LoadException, InterruptedException {
        try {
            admin.createTopics(List.of(wanted)).all().get();
            return true;
        } catch (ExecutionException e) {
            if (e.getCause() instanceof TopicExistsException) {
                return false;
            }
            throw failure("topic " + wanted.name() + " cannot be created", e.getCause());
        }
    }

    /** Delete the topics whose names are wanted; give the names of those that were there. */
    public List<String> remove(Predicate<String> wanted) throws LoadException, InterruptedException {
        try {
            List<String> names = admin.listTopics().names().get().stream().filter(wanted).sorted().toList();
            admin.deleteTopics(names).all().get();
            return names;
        } catch (ExecutionException e) {
            throw failure("topics cannot be deleted", e.getCause());
        }
    }

    /** Delete a group with the members that its stopped application left; one that is not there is fine. */
    public void removeGroup(String group) throws LoadException, InterruptedException {
        try {
            var description = admin.describeConsumerGroups(List.of(group)).describedGroups().get(group).get();
            if (!description.members().isEmpty()) {
                var all = new RemoveMembersFromConsumerGroupOptions();
                admin.removeMembersFromConsumerGroup(group, all).all().get();
            }
            admin.deleteConsumerGroups(List.of(group)).all().get();
        } catch (ExecutionException e) {
            if (!(e.getCause() instanceof GroupIdNotFoundException)) {
                throw failure("group " + group + " cannot be deleted", e.getCause());
            }
        }
    }

    private int awaitVisible(String topic) throws LoadException, InterruptedException {
        long deadline = System.nanoTime() + VISIBLE_WITHIN.toNanos();
        while (System.nanoTime() < deadline) {
            Optional<Integer> partitions = look(topic);
            if (partitions.isPresent()) {
                return partitions.get();
            }
            Thread.sleep(BETWEEN_LOOKS.toMillis());
        }
        throw new LoadException(
                "topic " + topic + " was created, but no broker shows it after " + VISIBLE_WITHIN.toSeconds() + " s");
    }

    private Optional<Integer> look(String topic) throws LoadException, InterruptedException {
        try {
            var description = admin.describeTopics(List.of(topic)).topicNameValues().get(topic).get();
            return Optional.of(description.partitions().size());
        } catch (ExecutionException e) {
            if (e.getCause() instanceof UnknownTopicOrPartitionException) {
                return Optional.empty();
            }
            throw failure("topic " + topic + " cannot be looked at", e.getCause());
        }
    }

    private static LoadException failure(String what, Throwable cause) {
        // The client's own message for silent brokers ("waiting for a node assignment") does not help.
        return cause instanceof TimeoutException
                ? new LoadException(what + ": no answer from the brokers; check --bootstrap-servers and that they run")
                : new LoadException(what, cause);
    }

    @Override
    public void close() {
        admin.close();
    }
}
