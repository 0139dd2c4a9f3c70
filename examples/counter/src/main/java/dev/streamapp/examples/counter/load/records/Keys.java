package dev.streamapp.examples.counter.load.records;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.stream.IntStream;
import org.apache.kafka.common.utils.Utils;

/**
 * The keys of the load: key number n is {@code key-<n>}, and its partition depends on its bytes only.
 *
 * <p>The partition is the default of Java's producer: murmur2, sign bit cleared, modulo the number of partitions.
 * So a record sent by hand with the same key increments the same count. The load computes the partition itself,
 * because the steady load chooses the partition before the key.
 */
public final class Keys {
    private Keys() {}

    /** Give the key with this number, counted from 0. */
    public static byte[] key(int number) {
        String digits = Integer.toString(number);
        return ("key-" + "0".repeat(Math.max(0, 8 - digits.length())) + digits).getBytes(StandardCharsets.UTF_8);
    }

    /** Give the partition of a key; the same for the same bytes and number of partitions, always and everywhere. */
    public static int partition(byte[] key, int partitions) {
        return Utils.toPositive(Utils.murmur2(key)) % partitions;
    }

    /** Give for each partition the numbers, ascending, of those of the first {@code keys} keys that belong to it. */
    static int[][] byPartition(int keys, int partitions) {
        int[] homes = IntStream.range(0, keys).map(number -> partition(key(number), partitions)).toArray();
        int[] sizes = new int[partitions];
        Arrays.stream(homes).forEach(home -> sizes[home]++);
        int[][] numbers = Arrays.stream(sizes).mapToObj(int[]::new).toArray(int[][]::new);
        int[] filled = new int[partitions];
        for (int number = 0; number < keys; number++) {
            int home = homes[number];
            numbers[home][filled[home]++] = number;
        }
        return numbers;
    }
}
