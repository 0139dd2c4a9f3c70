package dev.streamapp.agent.advice;

import dev.streamapp.agent.meeting.Meeting;
import java.util.Map;
import java.util.function.BiFunction;
import net.bytebuddy.asm.Advice;

/**
 * Runs at the begin of StreamsGroupHeartbeatRequestManager#poll, which each round of a consumer's network thread calls.
 *
 * <p>Byte Buddy refuses a class without the field: Kafka's class then stays as it is.
 */
public final class HeartbeatAdvice {

    private HeartbeatAdvice() {
    }

    @Advice.OnMethodEnter(suppress = Throwable.class)
    @SuppressWarnings("unchecked")
    static void enter(@Advice.FieldValue("heartbeatRequestState") Object state) throws ReflectiveOperationException {
        Object hook = ((Map<?, ?>) Class.forName(Meeting.NAME, true, null).getField(Meeting.FIELD).get(null)).get("hook");
        if (hook instanceof BiFunction) {
            ((BiFunction<Object, Object, Object>) hook).apply("heartbeat", new Object[] {state});
        }
    }
}
