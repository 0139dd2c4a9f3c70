package dev.streamapp.assignor;

import org.apache.kafka.streams.processor.assignment.TaskInfo;

/**
 * Says how heavy a task is. An implementation has a public constructor without arguments, and is named in {@code streamapp.assignor.weights.class}.
 *
 * <p>It must answer the same in every JVM of the application, or assignments change with the leader.
 */
@FunctionalInterface
public interface TaskWeights {

    /**
     * Return the weight of a task.
     *
     * @return 1 to 1,000,000; what lies outside is brought inside
     */
    int weightOf(TaskInfo task);
}
