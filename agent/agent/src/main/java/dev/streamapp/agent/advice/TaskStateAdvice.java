package dev.streamapp.agent.advice;

import dev.streamapp.agent.meeting.Meeting;
import java.util.Map;
import java.util.function.BiFunction;
import net.bytebuddy.asm.Advice;

/** Runs at the end of AbstractTask#transitionTo. It passes the task and its new state to the agent, for the times of the report. */
public final class TaskStateAdvice {

    private TaskStateAdvice() {
    }

    @Advice.OnMethodExit(suppress = Throwable.class)
    @SuppressWarnings("unchecked")
    static void exit(@Advice.This Object task, @Advice.Argument(0) Object state) throws ReflectiveOperationException {
        Object hook = ((Map<?, ?>) Class.forName(Meeting.NAME, true, null).getField(Meeting.FIELD).get(null)).get("hook");
        if (hook instanceof BiFunction) {
            ((BiFunction<Object, Object, Object>) hook).apply("task", new Object[] {task, state});
        }
    }
}
