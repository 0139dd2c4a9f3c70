package dev.streamapp.agent.advice;

import dev.streamapp.agent.meeting.Meeting;
import java.util.Map;
import java.util.function.BiFunction;
import net.bytebuddy.asm.Advice;

/** Runs at the end of each constructor of KafkaStreams. It passes the instance and the arguments to the agent. */
public final class ConstructorAdvice {

    private ConstructorAdvice() {
    }

    @Advice.OnMethodExit(suppress = Throwable.class)
    @SuppressWarnings("unchecked")
    static void exit(@Advice.This Object streams, @Advice.AllArguments Object[] arguments) throws ReflectiveOperationException {
        Object hook = ((Map<?, ?>) Class.forName(Meeting.NAME, true, null).getField(Meeting.FIELD).get(null)).get("hook");
        if (hook instanceof BiFunction) {
            ((BiFunction<Object, Object, Object>) hook).apply("constructed", new Object[] {streams, arguments});
        }
    }
}
