package dev.streamapp.agent.instrument;

import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import dev.streamapp.agent.advice.CleaningUp;
import dev.streamapp.agent.advice.Closing;
import dev.streamapp.agent.advice.ClosingWithin;
import dev.streamapp.agent.advice.Constructed;
import dev.streamapp.agent.advice.ConsumerConfigs;
import dev.streamapp.agent.advice.LoadingClass;
import dev.streamapp.agent.runtime.Complaints;
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
 * Puts the advices into three classes of Kafka's as they are loaded, whichever loader does it. Byte Buddy is touched only then, so a JVM that never
 * loads Kafka pays next to nothing.
 */
public final class KafkaTransformer implements ClassFileTransformer {

    /** Where an advice goes. */
    private record Place(Class<?> advice, ElementMatcher<? super MethodDescription> method) { }

    private static final Map<String, List<String>> CLASSES = Map.of(
            "org/apache/kafka/streams/KafkaStreams", List.of("constructed", "closing", "closingWithin", "cleaningUp"),
            "org/apache/kafka/streams/StreamsConfig", List.of("consumerConfigs"),
            "org/apache/kafka/common/utils/Utils", List.of("loadingClass"));

    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
        if (name == null || loader == null || redefined != null || !CLASSES.containsKey(name)) {
            return null;
        }
        try {
            return advised(loader, name.replace('/', '.'), CLASSES.get(name), bytes);
        } catch (Throwable e) {
            // Whatever it was: the class is loaded as it is, and the report says what is missing.
            Complaints.say(name + " is left as it is", e);
            return null;
        }
    }

    private static byte[] advised(ClassLoader loader, String name, List<String> places, byte[] bytes) {
        ClassFileLocator locator = new ClassFileLocator.Compound(ClassFileLocator.Simple.of(name, bytes), ClassFileLocator.ForClassLoader.of(loader));
        TypeDescription type = TypePool.Default.of(locator).describe(name).resolve();
        DynamicType.Builder<?> builder = new ByteBuddy().with(TypeValidation.DISABLED).decorate(type, locator);
        for (String key : places) {
            Place place = place(key);
            builder = builder.visit(Advice.to(place.advice(), ClassFileLocator.ForClassLoader.of(place.advice().getClassLoader())).on(place.method()));
        }
        return builder.make().getBytes();
    }

    private static Place place(String key) {
        return switch (key) {
            case "constructed" -> new Place(Constructed.class, isConstructor());
            case "closing" -> new Place(Closing.class, named("close").and(takesArguments(0)));
            case "closingWithin" -> new Place(ClosingWithin.class, named("close").and(takesArguments(Duration.class)));
            case "cleaningUp" -> new Place(CleaningUp.class, named("cleanUp").and(takesArguments(0)));
            case "consumerConfigs" -> new Place(ConsumerConfigs.class, named("getMainConsumerConfigs").and(takesArguments(3)));
            case "loadingClass" -> new Place(LoadingClass.class, named("loadClass").and(takesArguments(String.class, Class.class)));
            default -> throw new IllegalArgumentException(key);
        };
    }
}
