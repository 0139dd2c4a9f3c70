package dev.streamapp.agent.instance;

import dev.streamapp.agent.announcement.AnnouncementState;
import dev.streamapp.agent.config.Defaults;
import dev.streamapp.agent.kafka.KafkaApi;
import dev.streamapp.agent.runtime.WarningLog;
import java.lang.reflect.InaccessibleObjectException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Optional;

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
            Class<?> operations = kafka.type(KafkaApi.CLOSE_OPTIONS + "$GroupMembershipOperation");
            Object leave = operations.getField("LEAVE_GROUP").get(null);
            Leaving leaving = new Leaving(kafka, streams, operations, leave);
            return timeout instanceof Duration ? closeWithin((Duration) timeout, leaving) : closeWithoutLock(leaving);
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            WarningLog.warn("an instance that leaves closes as others do: " + KafkaApi.reason(e));
            return null;
        }
    }

    /** An instance, and Kafka's word for leaving the group. */
    private record Leaving(KafkaApi kafka, Object streams, Class<?> operations, Object leave) { }

    /** Calls the public method. It takes the monitor of the instance, as close(Duration) does by itself. */
    private static Object closeWithin(Duration timeout, Leaving leaving) throws ReflectiveOperationException {
        Class<?> options = leaving.kafka().type(KafkaApi.CLOSE_OPTIONS);
        Object chosen = options.getMethod("groupMembershipOperation", leaving.operations()).invoke(null, leaving.leave());
        if (timeout != null) {
            chosen = options.getMethod("withTimeout", Duration.class).invoke(chosen, timeout);
        }
        return leaving.kafka().type(KafkaApi.STREAMS).getMethod("close", options).invoke(leaving.streams(), chosen);
    }

    /**
     * Calls what close() itself calls. close(CloseOptions) takes the monitor of the instance, and start() holds it while a global store restores:
     * close() would then wait for the end of the restore. The method is not public, so a release may lack it.
     */
    private static Object closeWithoutLock(Leaving leaving) throws ReflectiveOperationException {
        try {
            Method close = leaving.kafka().type(KafkaApi.STREAMS).getDeclaredMethod("close", Optional.class, leaving.operations());
            close.setAccessible(true);
            return close.invoke(leaving.streams(), Optional.empty(), leaving.leave());
        } catch (NoSuchMethodException | InaccessibleObjectException e) {
            return closeWithin(null, leaving);
        }
    }
}
