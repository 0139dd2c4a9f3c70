package dev.streamapp.assignor.core.model;

import java.util.Objects;
import java.util.Set;

/**
 * The processes that leave the application soon, as far as the leader's JVM knows.
 *
 * @param state whether they are known
 * @param leaving process IDs, valid in the state {@link State#SET} only
 * @param eager each task moves as soon as its learner is ready; otherwise a process waits for all its learners
 * @param expiresInMillis the remaining validity; negative if it is unknown
 */
public record Announcement(State state, Set<String> leaving, boolean eager, long expiresInMillis) {

    /** The knowledge about the leaving processes. */
    public enum State {
        /** The leaving processes are unknown, which differs from {@link #EMPTY}. */
        UNKNOWN,
        /** No process leaves. */
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

    /** Return the announcement that no process leaves. */
    public static Announcement empty() {
        return new Announcement(State.EMPTY, Set.of(), false, -1);
    }

    /** Return the state of a JVM before its first announcement. */
    public static Announcement unknown() {
        return new Announcement(State.UNKNOWN, Set.of(), false, -1);
    }

    /** Return the announcement that these processes leave, taken over conservatively. */
    public static Announcement leaving(Set<String> processes, long expiresInMillis) {
        return new Announcement(State.SET, processes, false, expiresInMillis);
    }
}
