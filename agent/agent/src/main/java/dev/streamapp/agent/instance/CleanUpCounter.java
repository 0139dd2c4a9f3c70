package dev.streamapp.agent.instance;

import dev.streamapp.agent.kafka.KafkaApi;

/** Counts what KafkaStreams#cleanUp takes away before the start: an application that calls it restores everything at every start. */
public final class CleanUpCounter {

    private CleanUpCounter() {
    }

    /** The task directories that there are before; null where nothing is to be counted: the instance is not known, or has been started before. */
    public static Integer tasksBefore(Instance instance) throws ReflectiveOperationException {
        Object streams = instance == null ? null : instance.streams();
        if (streams == null || !instance.state(new KafkaApi(KafkaApi.loaderOf(streams, KafkaApi.STREAMS))).equals("CREATED")) {
            return null;
        }
        return instance.configuration().state().tasks();
    }

    /** Takes what {@link #tasksBefore} answered, and counts what is gone since. */
    public static void update(Instance instance, Object before) {
        if (instance != null && before instanceof Integer tasks) {
            instance.addCleaned(Math.max(0, tasks - instance.configuration().state().tasks()));
        }
    }
}
