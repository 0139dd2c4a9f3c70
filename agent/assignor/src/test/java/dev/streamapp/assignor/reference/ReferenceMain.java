package dev.streamapp.assignor.reference;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Reads one case a line from standard input, and writes one answer a line to standard output. */
public final class ReferenceMain {

    private ReferenceMain() {}

    /** A kind of assignor: a case in, placements out. */
    interface Reference {
        Object answer(JsonNode question) throws ReflectiveOperationException;
    }

    /**
     * Answer until the input ends.
     *
     * @param arguments the kind: {@code stock}, {@code learner} or {@code sticky}
     */
    public static void main(String[] arguments) throws IOException, ReflectiveOperationException {
        Reference reference = switch (arguments[0]) {
            case "stock" -> new StockReference();
            case "learner" -> new LearnerReference();
            case "sticky" -> new StickyReference();
            default -> throw new IllegalArgumentException("no such assignor: " + arguments[0]);
        };
        ObjectMapper mapper = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            answers.println(mapper.writeValueAsString(answer(reference, mapper.readTree(line))));
        }
    }

    private static Object answer(Reference reference, JsonNode question) {
        try {
            return reference.answer(question);
        } catch (InvocationTargetException thrown) {
            return Map.of("error", String.valueOf(thrown.getCause()));
        } catch (ReflectiveOperationException | RuntimeException thrown) {
            return Map.of("error", String.valueOf(thrown));
        }
    }
}
