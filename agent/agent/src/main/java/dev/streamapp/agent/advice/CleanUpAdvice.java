package dev.streamapp.agent.advice;

import dev.streamapp.agent.meeting.Meeting;
import java.util.Map;
import java.util.function.BiFunction;
import net.bytebuddy.asm.Advice;

/** Runs around KafkaStreams#cleanUp(), so that the agent counts the removed tasks. It changes nothing. */
public final class CleanUpAdvice {

    private CleanUpAdvice() {
    }

    @Advice.OnMethodEnter(suppress = Throwable.class)
    @SuppressWarnings("unchecked")
    static Object enter(@Advice.This Object streams) throws ReflectiveOperationException {
        Object hook = ((Map<?, ?>) Class.forName(Meeting.NAME, true, null).getField(Meeting.FIELD).get(null)).get("hook");
        return hook instanceof BiFunction ? ((BiFunction<Object, Object, Object>) hook).apply("cleaning", new Object[] {streams}) : null;
    }

    @Advice.OnMethodExit(suppress = Throwable.class)
    @SuppressWarnings("unchecked")
    static void exit(@Advice.This Object streams, @Advice.Enter Object before) throws ReflectiveOperationException {
        if (before != null) {
            Object hook = ((Map<?, ?>) Class.forName(Meeting.NAME, true, null).getField(Meeting.FIELD).get(null)).get("hook");
            if (hook instanceof BiFunction) {
                ((BiFunction<Object, Object, Object>) hook).apply("cleaned", new Object[] {streams, before});
            }
        }
    }
}
