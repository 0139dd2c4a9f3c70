package dev.streamapp.agent.meeting;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Where the agent, the assignor and the advices of one JVM meet, whichever class loaders they live in. It is defined in the boot loader, which all of
 * them reach by {@code Class.forName(NAME, true, null)}; nobody names it otherwise, so that there is never a second one.
 */
public final class Meeting {

    /** This class, as others look for it. */
    public static final String NAME = "dev.streamapp.agent.meeting.Meeting";

    /** The name of the field {@link #PLACE}. */
    public static final String FIELD = "PLACE";

    /** What the agent lays out, by key, in types of the JDK only. */
    public static final Map<String, Object> PLACE = new ConcurrentHashMap<>();

    private Meeting() {
    }
}
