package dev.streamapp.assignor.core.model;

import java.util.Objects;
import java.util.Set;

/**
 * Who leaves the application soon, as far as the leader's JVM knows.
 *
 * @param state whether that is known at all
 * @param leaving process IDs; looked at only where the state is {@link State#SET}
 * @param eager each task moves as soon as its learner is ready; otherwise a process waits for all its learners
 * @param expiresInMillis how long the announcement still holds; negative where that is not known
 */
public record Announcement(State state, Set<String> leaving, boolean eager, long expiresInMillis) {

    /** What is known of the leaving processes. */
    public enum State {
        /** Nothing yet, which is not "nobody". */
        UNKNOWN,
        /** Nobody leaves. */
        EMPTY,
        /** The named processes leave. */
        SET;

        /** Return the word for it in the agent's protocol. */
        public String word() {
            return name().toLowerCase(java.util.Locale.ROOT);
        }
    }

    /** Fills what is missing: no state is {@link State#UNKNOWN}. */
    public Announcement {
        state = Objects.requireNonNullElse(state, State.UNKNOWN);
        leaving = leaving == null ? Set.of() : Set.copyOf(leaving.stream().filter(Objects::nonNull).toList());
    }

    /** Return the announcement that nobody leaves. */
    public static Announcement empty() {
        return new Announcement(State.EMPTY, Set.of(), false, -1);
    }

    /** Return the announcement of a JVM that was told nothing yet. */
    public static Announcement unknown() {
        return new Announcement(State.UNKNOWN, Set.of(), false, -1);
    }

    /** Return the announcement that these processes leave, taken over conservatively. */
    public static Announcement leaving(Set<String> processes, long expiresInMillis) {
        return new Announcement(State.SET, processes, false, expiresInMillis);
    }
}
