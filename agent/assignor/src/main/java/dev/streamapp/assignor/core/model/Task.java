package dev.streamapp.assignor.core.model;

import java.util.Objects;

/**
 * A task of the application.
 *
 * @param id its name, for example {@code 0_3}
 * @param group its sub-topology; tasks of one sub-topology are spread if nothing else decides
 * @param stateful whether it has a store with a changelog, so that it can have copies
 * @param weight its share of the process's load: 1 to 1,000,000
 */
public record Task(String id, String group, boolean stateful, int weight) {

    /** More than this would let sums of loads overflow. */
    public static final int HEAVIEST = 1_000_000;

    /** Fills what is missing and brings the weight into its bounds. */
    public Task {
        id = Objects.requireNonNullElse(id, "");
        group = Objects.requireNonNullElse(group, "");
        weight = Math.max(1, Math.min(weight, HEAVIEST));
    }
}
