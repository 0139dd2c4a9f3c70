package dev.streamapp.agent.advice;

import dev.streamapp.agent.meeting.Meeting;
import java.util.Map;
import java.util.function.BiFunction;
import net.bytebuddy.asm.Advice;

/** Runs around KafkaStreams#close(Duration), as {@link CloseAdvice} does. It returns the result of the close that ran instead. */
public final class CloseWithTimeoutAdvice {

    private CloseWithTimeoutAdvice() {
    }

    @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class, suppress = Throwable.class)
    @SuppressWarnings("unchecked")
    static Object enter(@Advice.This Object streams, @Advice.Argument(0) Object timeout) throws ReflectiveOperationException {
        Object hook = ((Map<?, ?>) Class.forName(Meeting.NAME, true, null).getField(Meeting.FIELD).get(null)).get("hook");
        return hook instanceof BiFunction ? ((BiFunction<Object, Object, Object>) hook).apply("close", new Object[] {streams, timeout}) : null;
    }

    @Advice.OnMethodExit(suppress = Throwable.class)
    @SuppressWarnings("UnusedAssignment")
    static void exit(@Advice.Enter Object closed, @Advice.Return(readOnly = false) boolean result) {
        if (closed instanceof Boolean) {
            result = (Boolean) closed;
        }
    }
}
