package dev.streamapp.agent.instance;

import dev.streamapp.agent.announcement.AnnouncementState;
import dev.streamapp.agent.config.Defaults;
import dev.streamapp.agent.kafka.KafkaApi;
import dev.streamapp.agent.runtime.WarningLog;
import java.time.Duration;

/** Closes an instance of a leaving process so that its member leaves the group at once. Kafka offers this from 4.2 on. */
public final class LeaveOnClose {

    private final Defaults defaults;
    private final AnnouncementState announcementState;
    private final Instances instances;

    public LeaveOnClose(Defaults defaults, AnnouncementState announcementState, Instances instances) {
        this.defaults = defaults;
        this.announcementState = announcementState;
        this.instances = instances;
    }

    /**
     * Closes the instance, or returns null if its own close() must run: the process stays, the release lacks the option, or this close failed.
     * A second close does no harm.
     *
     * @param timeout the caller's {@link Duration}; null for close() without one
     * @return the result of close
     */
    public Object close(Object streams, Object timeout) {
        Instance instance = instances.find(streams);
        if (instance == null || !defaults.enabled("leave") || instance.processId() == null
                || !announcementState.now().leaving().contains(instance.processId())) {
            return null;
        }
        KafkaApi kafka = new KafkaApi(KafkaApi.loaderOf(streams, KafkaApi.STREAMS));
        if (!kafka.has(KafkaApi.CLOSE_OPTIONS)) {
            return null;
        }
        try {
            Class<?> options = kafka.type(KafkaApi.CLOSE_OPTIONS);
            Class<?> operations = kafka.type(KafkaApi.CLOSE_OPTIONS + "$GroupMembershipOperation");
            Object leave = operations.getField("LEAVE_GROUP").get(null);
            Object chosen = options.getMethod("groupMembershipOperation", operations).invoke(null, leave);
            if (timeout instanceof Duration) {
                chosen = options.getMethod("withTimeout", Duration.class).invoke(chosen, timeout);
            }
            return kafka.type(KafkaApi.STREAMS).getMethod("close", options).invoke(streams, chosen);
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            WarningLog.warn("an instance that leaves closes as others do: " + KafkaApi.reason(e));
            return null;
        }
    }
}
