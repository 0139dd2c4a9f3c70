package dev.streamapp.examples.counter.topology;

import static dev.streamapp.examples.counter.topology.ShapeDriver.answer;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TableTopologyTest {
    @TempDir
    private Path stateDirectory;

    private ShapeDriver driver() {
        return new ShapeDriver(TableTopology.build("in", "table", "out"), stateDirectory, "at_least_once");
    }

    @Test
    void everyInputGivesOneOutputAndThoseWithARowAreCounted() {
        try (ShapeDriver driver = driver()) {
            driver.pipe("table", "a", "row");
            driver.pipe("in", "a", "1");
            driver.pipe("in", "b", "2");
            driver.pipe("in", "a", "3");
            assertEquals(List.of(answer("a", 0, 1), answer("b", 1, 0), answer("a", 2, 2)), driver.answers());
        }
    }

    @Test
    void aRowThatWasMissingOnceKeepsTheCountTooLow() {
        try (ShapeDriver driver = driver()) {
            driver.pipe("table", "a", "row");
            driver.pipe("in", "a", "1");
            driver.pipe("table", "a", null);
            driver.pipe("in", "a", "2");
            driver.pipe("table", "a", "row again");
            driver.pipe("in", "a", "3");
            assertEquals(List.of(answer("a", 0, 1), answer("a", 1, 1), answer("a", 2, 2)), driver.answers());
        }
    }

    @Test
    void theTableHasNoChangelogButItsTopicAndTheCountsHaveOne() {
        try (ShapeDriver driver = driver()) {
            driver.pipe("table", "a", "row");
            driver.pipe("in", "a", "1");
            assertEquals(Set.of("out", "counter-counts-changelog"), driver.driver.producedTopicNames());
        }
    }

    @Test
    void recordsWithoutKeyHaveNoRow() {
        try (ShapeDriver driver = driver()) {
            driver.pipe("in", null, "1");
            assertEquals(List.of(answer(null, 0, 0)), driver.answers());
        }
    }
}
