package dev.streamapp.agent.heartbeat;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import java.io.IOException;
import java.io.StringReader;
import java.util.Set;

/**
 * What the operator asks for. {@code heartbeat.schema.json} defines the form.
 *
 * @param capMillis the longest interval between two heartbeats
 * @param ttlSeconds how long it holds; 0 ends it
 */
public record CapRequest(int capMillis, int ttlSeconds) {

    static final int MIN_CAP_MILLIS = 100;
    static final int MAX_CAP_MILLIS = 5_000;
    static final int MAX_TTL_SECONDS = 120;

    /** Parses the body of a request. Throws {@link IllegalArgumentException} with the reason if the body violates the schema. */
    public static CapRequest parse(String text) {
        JsonElement element;
        try {
            JsonReader reader = new JsonReader(new StringReader(text));
            reader.setStrictness(Strictness.STRICT);
            element = new Gson().getAdapter(JsonElement.class).read(reader);
            if (reader.peek() != JsonToken.END_DOCUMENT) {
                throw new IllegalArgumentException("more than one JSON value");
            }
        } catch (IOException | JsonParseException | IllegalStateException | StackOverflowError e) {
            throw new IllegalArgumentException("not JSON", e);
        }
        if (element == null || !element.isJsonObject() || !element.getAsJsonObject().keySet().equals(Set.of("capMillis", "ttlSeconds"))) {
            throw new IllegalArgumentException("the body has not exactly the fields [capMillis, ttlSeconds]");
        }
        JsonObject json = element.getAsJsonObject();
        return new CapRequest(within(json, "capMillis", MIN_CAP_MILLIS, MAX_CAP_MILLIS), within(json, "ttlSeconds", 0, MAX_TTL_SECONDS));
    }

    private static int within(JsonObject json, String key, int lowest, int highest) {
        JsonElement element = json.get(key);
        boolean isShortNumber = element.isJsonPrimitive() && element.getAsJsonPrimitive().isNumber() && element.getAsString().length() <= 20;
        try {
            int value = isShortNumber ? element.getAsBigDecimal().intValueExact() : -1;
            if (value >= lowest && value <= highest) {
                return value;
            }
        } catch (ArithmeticException | NumberFormatException e) {
            // The exception below covers this case.
        }
        throw new IllegalArgumentException(key + " is no integer from " + lowest + " to " + highest);
    }
}
