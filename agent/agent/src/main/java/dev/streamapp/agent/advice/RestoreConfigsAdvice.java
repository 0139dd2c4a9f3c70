package dev.streamapp.agent.advice;

import dev.streamapp.agent.meeting.Meeting;
import java.util.Map;
import java.util.function.BiFunction;
import net.bytebuddy.asm.Advice;

/** Runs at the end of StreamsConfig#getRestoreConsumerConfigs, so that the agent adds defaults to unset settings. */
public final class RestoreConfigsAdvice {

    private RestoreConfigsAdvice() {
    }

    @Advice.OnMethodExit(suppress = Throwable.class)
    @SuppressWarnings("unchecked")
    static void exit(@Advice.This Object config, @Advice.Return Object consumerConfigs) throws ReflectiveOperationException {
        Object hook = ((Map<?, ?>) Class.forName(Meeting.NAME, true, null).getField(Meeting.FIELD).get(null)).get("hook");
        if (hook instanceof BiFunction) {
            ((BiFunction<Object, Object, Object>) hook).apply("restoreConfigs", new Object[] {config, consumerConfigs});
        }
    }
}
