package dev.streamapp.examples.counter.load.records;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class KeysTest {
    @ParameterizedTest
    @CsvSource({"0, key-00000000", "1234567, key-01234567", "2147483647, key-2147483647"})
    void aKeyIsItsNumber(int number, String expected) {
        assertEquals(expected, new String(Keys.key(number), StandardCharsets.UTF_8));
    }

    /** Java's producer chose these on a real broker, left to itself; another law would split every key's count. */
    @Test
    void thePartitionIsTheOneOfTheProducersOfJava() {
        int[] partitions = IntStream.range(0, 12).map(number -> Keys.partition(Keys.key(number), 6)).toArray();
        assertArrayEquals(new int[] {1, 0, 2, 0, 0, 4, 5, 3, 2, 1, 2, 2}, partitions);
    }

    @Test
    void everyKeyIsInOnePartitionAndItIsItsOwn() {
        int[][] numbers = Keys.byPartition(10_000, 6);
        for (int partition = 0; partition < numbers.length; partition++) {
            int home = partition;
            assertTrue(Arrays.stream(numbers[partition]).allMatch(number -> Keys.partition(Keys.key(number), 6) == home));
        }
        int[] all = Arrays.stream(numbers).flatMapToInt(Arrays::stream).sorted().toArray();
        assertArrayEquals(IntStream.range(0, 10_000).toArray(), all);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 6, 7, 12})
    void aMillionKeysAreSpreadEvenly(int partitions) {
        int even = 1_000_000 / partitions;
        for (int[] own : Keys.byPartition(1_000_000, partitions)) {
            assertEquals(even, own.length, even * 0.01);
        }
    }
}
