package dev.streamapp.examples.counter.load;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

class RemoveCommandTest {
    @Test
    void onlyTheTopicsOfTheApplicationAreItsOwn() {
        List<String> all = List.of("a-in", "a-out", "a-counts-changelog", "a-b", "ab-counts-changelog", "a", "x-in");
        assertEquals(
                List.of("a-in", "a-out", "a-counts-changelog"),
                all.stream().filter(name -> RemoveCommand.isOwn(name, "a", "a-in", "a-out")).toList());
    }
}
