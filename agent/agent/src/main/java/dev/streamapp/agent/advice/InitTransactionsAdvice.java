package dev.streamapp.agent.advice;

import dev.streamapp.agent.meeting.Meeting;
import java.util.Map;
import java.util.function.BiFunction;
import net.bytebuddy.asm.Advice;

/**
 * Runs around KafkaProducer#initTransactions, which is left out where the agent has initialized the producer: it can be done once.
 *
 * <p>A producer that was refused once refuses every further call with another exception. Then the caller gets the first one.
 */
public final class InitTransactionsAdvice {

    private InitTransactionsAdvice() {
    }

    @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class, suppress = Throwable.class)
    @SuppressWarnings("unchecked")
    static Object enter(@Advice.This Object producer) throws ReflectiveOperationException {
        Object hook = ((Map<?, ?>) Class.forName(Meeting.NAME, true, null).getField(Meeting.FIELD).get(null)).get("hook");
        return hook instanceof BiFunction ? ((BiFunction<Object, Object, Object>) hook).apply("initTransactions", new Object[] {producer}) : null;
    }

    @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    @SuppressWarnings({"unchecked", "ParameterCanBeLocal"})
    static void exit(@Advice.This Object producer, @Advice.Thrown(readOnly = false) Throwable thrown) throws ReflectiveOperationException {
        if (thrown != null) {
            Object hook = ((Map<?, ?>) Class.forName(Meeting.NAME, true, null).getField(Meeting.FIELD).get(null)).get("hook");
            Object first = hook instanceof BiFunction
                ? ((BiFunction<Object, Object, Object>) hook).apply("initTransactionsFailed", new Object[] {producer, thrown}) : null;
            if (first instanceof Throwable) {
                thrown = (Throwable) first;
            }
        }
    }
}
