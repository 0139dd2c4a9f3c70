package dev.streamapp.agent.instrument;

import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.not;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;
import static net.bytebuddy.matcher.ElementMatchers.takesNoArguments;

import dev.streamapp.agent.advice.AssignmentAdvice;
import dev.streamapp.agent.advice.CleanUpAdvice;
import dev.streamapp.agent.advice.CloseAdvice;
import dev.streamapp.agent.advice.CloseWithTimeoutAdvice;
import dev.streamapp.agent.advice.ConstructorAdvice;
import dev.streamapp.agent.advice.ConsumerConfigsAdvice;
import dev.streamapp.agent.advice.HeartbeatAdvice;
import dev.streamapp.agent.advice.InitTransactionsAdvice;
import dev.streamapp.agent.advice.LoadClassAdvice;
import dev.streamapp.agent.advice.PollAdvice;
import dev.streamapp.agent.advice.ProducerAdvice;
import dev.streamapp.agent.advice.RestoreConfigsAdvice;
import dev.streamapp.agent.advice.TaskStateAdvice;
import dev.streamapp.agent.runtime.WarningLog;
import java.lang.instrument.ClassFileTransformer;
import java.security.ProtectionDomain;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.dynamic.DynamicType;
import net.bytebuddy.dynamic.scaffold.TypeValidation;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.pool.TypePool;

/**
 * Puts the advices into eight classes of Kafka when they are loaded, in any class loader.
 *
 * <p>Byte Buddy is loaded only then, so a JVM without Kafka pays next to nothing.
 */
public final class KafkaTransformer implements ClassFileTransformer {

    /** An advice and the methods that it enters. */
    private record Target(Class<?> advice, ElementMatcher<? super MethodDescription> method) { }

    private static final Map<String, List<String>> CLASSES = Map.of(
            "org/apache/kafka/streams/KafkaStreams", List.of("constructed", "closing", "closingWithin", "cleaningUp"),
            "org/apache/kafka/streams/StreamsConfig", List.of("consumerConfigs", "restoreConfigs"),
            "org/apache/kafka/common/utils/Utils", List.of("loadingClass"),
            "org/apache/kafka/clients/consumer/internals/StreamsGroupHeartbeatRequestManager", List.of("heartbeat"),
            "org/apache/kafka/streams/processor/internals/AbstractTask", List.of("taskState"),
            "org/apache/kafka/streams/processor/internals/StreamsPartitionAssignor", List.of("assigned"),
            "org/apache/kafka/clients/consumer/KafkaConsumer", List.of("polling"),
            "org/apache/kafka/clients/producer/KafkaProducer", List.of("producer", "initTransactions"));

    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
        if (name == null || loader == null || redefined != null || !CLASSES.containsKey(name)) {
            return null;
        }
        try {
            return transformed(loader, name.replace('/', '.'), CLASSES.get(name), bytes);
        } catch (Throwable e) {
            // The class is then loaded unchanged, and the report shows the limitation.
            WarningLog.warn(name + " is left as it is", e);
            return null;
        }
    }

    private static byte[] transformed(ClassLoader loader, String name, List<String> targets, byte[] bytes) {
        ClassFileLocator locator = new ClassFileLocator.Compound(ClassFileLocator.Simple.of(name, bytes), ClassFileLocator.ForClassLoader.of(loader));
        TypeDescription type = TypePool.Default.of(locator).describe(name).resolve();
        DynamicType.Builder<?> builder = new ByteBuddy().with(TypeValidation.DISABLED).decorate(type, locator);
        for (String key : targets) {
            Target target = target(key);
            builder = builder.visit(Advice.to(target.advice(), ClassFileLocator.ForClassLoader.of(target.advice().getClassLoader())).on(target.method()));
        }
        return builder.make().getBytes();
    }

    private static Target target(String key) {
        return switch (key) {
            case "constructed" -> new Target(ConstructorAdvice.class, isConstructor());
            case "closing" -> new Target(CloseAdvice.class, named("close").and(takesArguments(0)));
            case "closingWithin" -> new Target(CloseWithTimeoutAdvice.class, named("close").and(takesArguments(Duration.class)));
            case "cleaningUp" -> new Target(CleanUpAdvice.class, named("cleanUp").and(takesArguments(0)));
            case "consumerConfigs" -> new Target(ConsumerConfigsAdvice.class, named("getMainConsumerConfigs").and(takesArguments(3)));
            case "restoreConfigs" -> new Target(RestoreConfigsAdvice.class, named("getRestoreConsumerConfigs").and(takesArguments(1)));
            case "loadingClass" -> new Target(LoadClassAdvice.class, named("loadClass").and(takesArguments(String.class, Class.class)));
            case "heartbeat" -> new Target(HeartbeatAdvice.class, named("poll").and(takesArguments(long.class)));
            case "taskState" -> new Target(TaskStateAdvice.class, named("transitionTo").and(takesArguments(1)));
            case "assigned" -> new Target(AssignmentAdvice.class, named("onAssignment").and(takesArguments(2)));
            case "polling" -> new Target(PollAdvice.class, named("poll").and(takesArguments(Duration.class)));
            case "producer" -> new Target(ProducerAdvice.class, isConstructor().and(not(takesNoArguments())));
            case "initTransactions" -> new Target(InitTransactionsAdvice.class, named("initTransactions"));
            default -> throw new IllegalArgumentException(key);
        };
    }
}
