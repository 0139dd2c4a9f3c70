package dev.streamapp.agent.instance;

import dev.streamapp.agent.kafka.KafkaApi;

/**
 * Counts the task directories that KafkaStreams#cleanUp removes before the start.
 *
 * <p>An application that calls cleanUp restores its whole state at every start.
 */
public final class CleanUpCounter {

    private CleanUpCounter() {
    }

    /** Returns the number of task directories, or null if the instance is unknown or was started before. */
    public static Integer tasksBefore(Instance instance) throws ReflectiveOperationException {
        Object streams = instance == null ? null : instance.streams();
        if (streams == null || !instance.state(new KafkaApi(KafkaApi.loaderOf(streams, KafkaApi.STREAMS))).equals("CREATED")) {
            return null;
        }
        return instance.configuration().state().tasks();
    }

    /** Adds the number of directories that disappeared since {@link #tasksBefore}. */
    public static void update(Instance instance, Object before) {
        if (instance != null && before instanceof Integer tasks) {
            instance.addCleaned(Math.max(0, tasks - instance.configuration().state().tasks()));
        }
    }
}
