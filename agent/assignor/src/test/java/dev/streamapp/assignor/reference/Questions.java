package dev.streamapp.assignor.reference;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Reads the parts that all cases have in common. */
final class Questions {

    private Questions() {}

    static Set<String> names(JsonNode list) {
        Set<String> names = new LinkedHashSet<>();
        list.forEach(name -> names.add(name.asText()));
        return names;
    }

    /** Return the entries of an object; the newer {@code properties()} is missing in the Jackson of old releases. */
    static List<Map.Entry<String, JsonNode>> entries(JsonNode object) {
        List<Map.Entry<String, JsonNode>> entries = new ArrayList<>();
        object.fieldNames().forEachRemaining(name -> entries.add(Map.entry(name, object.get(name))));
        return entries;
    }
}
