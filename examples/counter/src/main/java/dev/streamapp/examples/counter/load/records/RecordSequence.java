package dev.streamapp.examples.counter.load.records;

import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/**
 * The sequence of the steady load: one record per partition in each round, with a random key of that partition.
 *
 * <p>It omits silent partitions. Equal seeds give equal sequences.
 */
public final class RecordSequence {
    private final int[][] numbers;
    private final int[] loud;
    private final SplittableRandom random;
    private int turn;

    /** One record of the sequence. */
    public record Next(int partition, byte[] key) {}

    public RecordSequence(int keys, int partitions, Set<Integer> quiet, SplittableRandom random) throws LoadException {
        this.numbers = Keys.byPartition(keys, partitions);
        this.loud = IntStream.range(0, partitions)
                .filter(partition -> !quiet.contains(partition))
                .toArray();
        this.random = random;
        if (loud.length == 0) {
            throw new LoadException("all of " + partitions + " partitions are quiet; give fewer in --quiet");
        }
        for (int partition : loud) {
            if (numbers[partition].length == 0) {
                throw new LoadException("none of " + keys + " keys belongs to partition " + partition + "; give more --keys");
            }
        }
    }

    public Next next() {
        int partition = loud[turn];
        turn = (turn + 1) % loud.length;
        int[] own = numbers[partition];
        return new Next(partition, Keys.key(own[random.nextInt(own.length)]));
    }
}
