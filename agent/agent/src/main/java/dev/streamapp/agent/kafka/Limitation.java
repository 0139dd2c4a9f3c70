package dev.streamapp.agent.kafka;

import com.google.gson.JsonObject;

/**
 * A function that the agent does not perform, with the reason. An entry of the report's {@code asides}.
 *
 * @param what one of the names in the report's schema
 * @param why the reason, as a sentence
 * @param kind the reason, for programs
 */
public record Limitation(String what, String why, Kind kind) {

    /** The kinds of the report's schema, by their names there. */
    public enum Kind { OlderStreams, OwnAssignor, StreamsProtocol, UnknownLoader, SwitchedOff, Failed }

    public static Limitation failed(String what, Throwable cause) {
        return new Limitation(what, KafkaApi.reason(cause), Kind.Failed);
    }

    public JsonObject json() {
        JsonObject json = new JsonObject();
        json.addProperty("what", what);
        json.addProperty("why", why);
        json.addProperty("kind", kind.name());
        return json;
    }
}
