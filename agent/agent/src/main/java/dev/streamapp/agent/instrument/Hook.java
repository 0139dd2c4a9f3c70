package dev.streamapp.agent.instrument;

import dev.streamapp.agent.assignor.AssignorInstaller;
import dev.streamapp.agent.config.Defaults;
import dev.streamapp.agent.config.InstanceConfig;
import dev.streamapp.agent.heartbeat.HeartbeatCap;
import dev.streamapp.agent.instance.CleanUpCounter;
import dev.streamapp.agent.instance.Instances;
import dev.streamapp.agent.instance.LeaveOnClose;
import dev.streamapp.agent.instance.PollWaits;
import dev.streamapp.agent.instance.TaskTimes;
import dev.streamapp.agent.kafka.KafkaApi;
import dev.streamapp.agent.runtime.WarningLog;
import dev.streamapp.agent.warmup.WarmUp;
import java.time.Duration;
import java.util.Map;
import java.util.function.BiFunction;

/**
 * The function that the advices in Kafka's classes call, with values of JDK types.
 *
 * <p>It throws nothing. A null result means that Kafka's method runs unchanged.
 */
public final class Hook implements BiFunction<Object, Object, Object> {

    /** The key of the hook in the registry. */
    public static final String KEY = "hook";
    private final Parts parts;

    /** The parts of the agent that the advices reach. */
    public record Parts(Instances instances, Defaults defaults, LeaveOnClose leaveOnClose, AssignorInstaller assignor, TaskTimes taskTimes,
                        PollWaits pollWaits, HeartbeatCap heartbeatCap, WarmUp warmUp, Runnable firstInstance) { }

    public Hook(Parts parts) {
        this.parts = parts;
    }

    @Override
    public Object apply(Object event, Object arguments) {
        try {
            Object[] values = (Object[]) arguments;
            switch ((String) event) {
                case "constructed" -> {
                    parts.firstInstance().run();
                    parts.instances().constructed(values[0], (Object[]) values[1], parts.defaults());
                }
                case "consumerConfigs" -> {
                    InstanceConfig.complete(parts.defaults(), values[0], values[1]);
                    parts.pollWaits().configured(values[0], (Map<?, ?>) values[1]);
                    InstanceConfig.allowWarmUp(parts.defaults(), values[0], onDemand -> parts.warmUp().allow((Map<?, ?>) values[1], onDemand));
                }
                case "restoreConfigs" -> InstanceConfig.completeRestore(parts.defaults(), values[0], values[1]);
                case "close" -> {
                    return parts.leaveOnClose().close(values[0], values[1]);
                }
                case "cleaning" -> {
                    return CleanUpCounter.tasksBefore(parts.instances().find(values[0]));
                }
                case "cleaned" -> CleanUpCounter.update(parts.instances().find(values[0]), values[1]);
                case "loadClass" -> {
                    return parts.assignor().definedClass((Class<?>) values[0]);
                }
                case "heartbeat" -> parts.heartbeatCap().beforeHeartbeat(values[0]);
                case "task" -> {
                    parts.pollWaits().changed();
                    parts.taskTimes().changed(values[0], values[1]);
                    parts.warmUp().changed(values[0], values[1]);
                }
                case "producer" -> parts.warmUp().constructed(values[0], values[1]);
                case "initTransactions" -> {
                    return parts.warmUp().initializing(values[0]);
                }
                case "initTransactionsFailed" -> {
                    return parts.warmUp().initializationFailed(values[0], (Throwable) values[1]);
                }
                case "assignment" -> parts.pollWaits().changed();
                case "poll" -> {
                    return parts.pollWaits().shortened((Duration) values[0]);
                }
                default -> { }
            }
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            WarningLog.warn("the agent failed at " + event + ", the application goes on without it: " + KafkaApi.reason(e));
        }
        return null;
    }
}
