package dev.streamapp.agent.kafka;

import com.google.gson.JsonObject;

/**
 * Something the agent does not do, and why; an entry of the report's {@code asides}.
 *
 * @param what one of the report schema's names
 * @param why a sentence
 * @param kind why, for a program
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
