package dev.streamapp.agent.announcement;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/**
 * The processes that leave soon, as the operator announces them. {@code announcement.schema.json} defines the form.
 *
 * @param epoch the version of the announcement
 * @param ttlSeconds the validity after each acceptance or renewal
 * @param processIds the processes that leave; empty if none does
 * @param rebalance {@code Conservative} or {@code Eager}
 */
public record Announcement(Epoch epoch, int ttlSeconds, List<String> processIds, String rebalance) {

    /** Orders announcements: by lease, then by counter. */
    public record Epoch(long lease, long counter) implements Comparable<Epoch> {
        @Override
        public int compareTo(Epoch other) {
            int byLease = Long.compare(lease, other.lease);
            return byLease != 0 ? byLease : Long.compare(counter, other.counter);
        }

        public JsonObject json() {
            JsonObject json = new JsonObject();
            json.addProperty("lease", lease);
            json.addProperty("counter", counter);
            return json;
        }
    }

    private static final Pattern PROCESS_ID = Pattern.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}");
    private static final int MAX_PROCESSES = 1000;
    private static final int MAX_TTL_SECONDS = 600;
    /** The operator's counters follow its clock, in seconds. One from far ahead would refuse all later announcements for as long. */
    private static final long MAX_SECONDS_AHEAD = TimeUnit.DAYS.toSeconds(1);

    boolean sameContent(Announcement other) {
        return rebalance.equals(other.rebalance) && Set.copyOf(processIds).equals(Set.copyOf(other.processIds));
    }

    /** Parses the body of a request. Throws {@link IllegalArgumentException} with the reason if the body violates the schema. */
    public static Announcement parse(String text) {
        JsonElement element;
        try {
            JsonReader reader = new JsonReader(new StringReader(text));
            reader.setStrictness(Strictness.STRICT);
            element = new Gson().getAdapter(JsonElement.class).read(reader);
            if (reader.peek() != com.google.gson.stream.JsonToken.END_DOCUMENT) {
                throw new IllegalArgumentException("more than one JSON value");
            }
        } catch (java.io.IOException | JsonParseException | IllegalStateException | StackOverflowError e) {
            throw new IllegalArgumentException("not JSON", e);
        }
        JsonObject json = object(element, "the body", Set.of("epoch", "ttlSeconds", "processIds", "rebalance"));
        JsonObject epoch = object(json.get("epoch"), "epoch", Set.of("lease", "counter"));
        long ttl = number(json.get("ttlSeconds"), "ttlSeconds");
        require(ttl >= 1 && ttl <= MAX_TTL_SECONDS, "ttlSeconds is not from 1 to " + MAX_TTL_SECONDS);
        Epoch offered = new Epoch(number(epoch.get("lease"), "lease"), number(epoch.get("counter"), "counter"));
        require(offered.counter() <= TimeUnit.MILLISECONDS.toSeconds(System.currentTimeMillis()) + MAX_SECONDS_AHEAD,
                "counter is more than a day ahead of this machine's clock");
        String rebalance = string(json.get("rebalance"), "rebalance");
        require(Set.of("Conservative", "Eager").contains(rebalance), "rebalance is neither Conservative nor Eager");
        return new Announcement(offered, (int) ttl, processIds(json.get("processIds")), rebalance);
    }

    private static List<String> processIds(JsonElement element) {
        require(element != null && element.isJsonArray(), "processIds is not an array");
        JsonArray array = element.getAsJsonArray();
        require(array.size() <= MAX_PROCESSES, "processIds has more than " + MAX_PROCESSES + " items");
        List<String> ids = new ArrayList<>();
        for (JsonElement item : array) {
            String id = string(item, "an item of processIds");
            require(PROCESS_ID.matcher(id).matches(), "an item of processIds is no UUID in lower case");
            ids.add(id);
        }
        require(new HashSet<>(ids).size() == ids.size(), "processIds has an item twice");
        return List.copyOf(ids);
    }

    private static JsonObject object(JsonElement element, String what, Set<String> keys) {
        require(element != null && element.isJsonObject(), what + " is not an object");
        require(element.getAsJsonObject().keySet().equals(keys), what + " has not exactly the fields " + new java.util.TreeSet<>(keys));
        return element.getAsJsonObject();
    }

    private static String string(JsonElement element, String what) {
        require(element != null && element.isJsonPrimitive() && element.getAsJsonPrimitive().isString(), what + " is not a string");
        return element.getAsString();
    }

    private static long number(JsonElement element, String what) {
        require(element != null && element.isJsonPrimitive() && element.getAsJsonPrimitive().isNumber(), what + " is not a number");
        require(element.getAsString().length() <= 20, what + " is too long a number");
        try {
            long value = element.getAsBigDecimal().longValueExact();
            require(value >= 0, what + " is negative");
            return value;
        } catch (ArithmeticException | NumberFormatException e) {
            throw new IllegalArgumentException(what + " is not an integer", e);
        }
    }

    private static void require(boolean holds, String sentence) {
        if (!holds) {
            throw new IllegalArgumentException(sentence);
        }
    }
}
