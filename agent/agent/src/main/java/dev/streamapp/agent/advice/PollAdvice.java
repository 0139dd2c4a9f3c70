package dev.streamapp.agent.advice;

import dev.streamapp.agent.meeting.Meeting;
import java.time.Duration;
import java.util.Map;
import java.util.function.BiFunction;
import net.bytebuddy.asm.Advice;

/** Runs before KafkaConsumer#poll(Duration), which waits for a shorter time if the agent says so. */
public final class PollAdvice {

    private PollAdvice() {
    }

    @Advice.OnMethodEnter(suppress = Throwable.class)
    @SuppressWarnings({"unchecked", "UnusedAssignment"})
    static void enter(@Advice.Argument(value = 0, readOnly = false) Duration timeout) throws ReflectiveOperationException {
        Object hook = ((Map<?, ?>) Class.forName(Meeting.NAME, true, null).getField(Meeting.FIELD).get(null)).get("hook");
        if (hook instanceof BiFunction) {
            Object shorter = ((BiFunction<Object, Object, Object>) hook).apply("poll", new Object[] {timeout});
            timeout = shorter instanceof Duration ? (Duration) shorter : timeout;
        }
    }
}
