package dev.streamapp.examples.counter;

import java.util.SplittableRandom;

/**
 * The order of the steady load: partition after partition, so that each gets a record in every round, and within a
 * partition a key by chance among those that belong to it. Equal seeds give equal orders.
 */
final class Rounds {
    private final int[][] numbers;
    private final SplittableRandom random;
    private int turn;

    /** One record of the order. */
    record Next(int partition, byte[] key) {}

    Rounds(int keys, int partitions, SplittableRandom random) throws Failure {
        this.numbers = Keys.byPartition(keys, partitions);
        this.random = random;
        for (int partition = 0; partition < partitions; partition++) {
            if (numbers[partition].length == 0) {
                throw new Failure("none of " + keys + " keys belongs to partition " + partition + "; give more --keys");
            }
        }
    }

    Next next() {
        int partition = turn;
        turn = (turn + 1) % numbers.length;
        int[] own = numbers[partition];
        return new Next(partition, Keys.key(own[random.nextInt(own.length)]));
    }
}
