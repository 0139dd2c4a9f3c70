package dev.streamapp.agent.advice;

import dev.streamapp.agent.meeting.Meeting;
import java.util.Map;
import java.util.function.BiFunction;
import net.bytebuddy.asm.Advice;

/** Runs around KafkaStreams#close(). The member of a leaving process leaves the group at once. */
public final class CloseAdvice {

    private CloseAdvice() {
    }

    @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class, suppress = Throwable.class)
    @SuppressWarnings("unchecked")
    static Object enter(@Advice.This Object streams) throws ReflectiveOperationException {
        Object hook = ((Map<?, ?>) Class.forName(Meeting.NAME, true, null).getField(Meeting.FIELD).get(null)).get("hook");
        return hook instanceof BiFunction ? ((BiFunction<Object, Object, Object>) hook).apply("close", new Object[] {streams, null}) : null;
    }
}
