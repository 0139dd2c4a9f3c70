package dev.streamapp.agent.meeting;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Holds the map that the agent, the assignor and the advices of one JVM share, in whatever class loaders they live.
 *
 * <p>The agent defines this class in the boot loader. The others reach it by {@code Class.forName(NAME, true, null)}.
 * They use no other way, so a second copy of the map cannot exist.
 */
public final class Meeting {

    /** The name of this class, for the lookup. */
    public static final String NAME = "dev.streamapp.agent.meeting.Meeting";

    /** The name of the field {@link #PLACE}. */
    public static final String FIELD = "PLACE";

    /** The functions of the agent, by key, in types of the JDK only. */
    public static final Map<String, Object> PLACE = new ConcurrentHashMap<>();

    private Meeting() {
    }
}
