/**
 * The learner task assignor on Kafka Streams' public interface (KIP-924), and its connection to the agent of the same JVM.
 *
 * <p>No exception may leave this package: it would stop the leader's stream thread, and then the next leader's.
 */
package dev.streamapp.assignor;
