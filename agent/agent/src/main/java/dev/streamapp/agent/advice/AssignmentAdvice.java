package dev.streamapp.agent.advice;

import dev.streamapp.agent.meeting.Meeting;
import java.util.Map;
import java.util.function.BiFunction;
import net.bytebuddy.asm.Advice;

/** Runs at the end of ConsumerPartitionAssignor#onAssignment of Kafka Streams: a rebalance has ended, and tasks may move. */
public final class AssignmentAdvice {

    private AssignmentAdvice() {
    }

    @Advice.OnMethodExit(suppress = Throwable.class)
    @SuppressWarnings("unchecked")
    static void exit() throws ReflectiveOperationException {
        Object hook = ((Map<?, ?>) Class.forName(Meeting.NAME, true, null).getField(Meeting.FIELD).get(null)).get("hook");
        if (hook instanceof BiFunction) {
            ((BiFunction<Object, Object, Object>) hook).apply("assignment", new Object[0]);
        }
    }
}
