package dev.streamapp.examples.counter.load.records;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class RecordSequenceTest {
    private static List<RecordSequence.Next> firstOf(int count, int keys, int partitions, long seed) throws LoadException {
        RecordSequence sequence = new RecordSequence(keys, partitions, Set.of(), new SplittableRandom(seed));
        return Stream.generate(sequence::next).limit(count).toList();
    }

    private static String text(RecordSequence.Next next) {
        return next.partition() + ":" + new String(next.key(), StandardCharsets.UTF_8);
    }

    @Test
    void everyPartitionHasItsTurnInEveryRound() throws LoadException {
        assertEquals(
                IntStream.range(0, 60).map(n -> n % 6).boxed().toList(),
                firstOf(60, 1_000, 6, 0).stream().map(RecordSequence.Next::partition).toList());
    }

    @Test
    void everyKeyBelongsToThePartitionItIsSentTo() throws LoadException {
        for (RecordSequence.Next next : firstOf(5_000, 1_000, 6, 0)) {
            assertEquals(Keys.partition(next.key(), 6), next.partition());
        }
    }

    @Test
    void allKeysAreDrawnAndNoOthers() throws LoadException {
        Set<String> drawn = new HashSet<>();
        firstOf(5_000, 100, 6, 0).forEach(next -> drawn.add(new String(next.key(), StandardCharsets.UTF_8)));
        Set<String> all = new HashSet<>();
        IntStream.range(0, 100).forEach(number -> all.add(new String(Keys.key(number), StandardCharsets.UTF_8)));
        assertEquals(all, drawn);
    }

    @Test
    void theSeedDecidesTheOrder() throws LoadException {
        List<String> first = firstOf(100, 1_000, 6, 7).stream().map(RecordSequenceTest::text).toList();
        List<String> again = firstOf(100, 1_000, 6, 7).stream().map(RecordSequenceTest::text).toList();
        List<String> other = firstOf(100, 1_000, 6, 8).stream().map(RecordSequenceTest::text).toList();
        assertEquals(first, again);
        assertNotEquals(first, other);
    }

    @Test
    void tooFewKeysForThePartitionsAreRefused() {
        LoadException failure = assertThrows(LoadException.class, () -> firstOf(1, 1, 2, 0));
        assertEquals("none of 1 keys belongs to partition 0; give more --keys", failure.getMessage());
    }

    @Test
    void quietPartitionsAreLeftOut() throws LoadException {
        RecordSequence sequence = new RecordSequence(1_000, 6, Set.of(0, 4), new SplittableRandom(0));
        assertEquals(
                List.of(1, 2, 3, 5, 1, 2, 3, 5),
                Stream.generate(sequence::next).limit(8).map(RecordSequence.Next::partition).toList());
    }

    @Test
    void atLeastOnePartitionGetsRecords() {
        LoadException failure =
                assertThrows(LoadException.class, () -> new RecordSequence(10, 2, Set.of(0, 1), new SplittableRandom(0)));
        assertEquals("all of 2 partitions are quiet; give fewer in --quiet", failure.getMessage());
    }
}
