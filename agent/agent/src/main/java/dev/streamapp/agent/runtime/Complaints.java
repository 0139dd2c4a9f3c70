package dev.streamapp.agent.runtime;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** One line on stderr per problem, and never more than {@value #MOST} of them in the life of a JVM. */
public final class Complaints {

    private static final int MOST = 50;
    private static final int LONGEST = 400;
    private static final Set<String> SAID = ConcurrentHashMap.newKeySet();

    private Complaints() {
    }

    public static void say(String sentence) {
        if (SAID.size() < MOST && SAID.add(sentence)) {
            System.err.println("streamapp-agent: " + oneLine(sentence));
        }
    }

    public static void say(String sentence, Throwable cause) {
        say(sentence + ": " + cause);
    }

    private static String oneLine(String sentence) {
        String line = sentence.replaceAll("\\s+", " ");
        return line.length() <= LONGEST ? line : line.substring(0, LONGEST) + " …";
    }
}
