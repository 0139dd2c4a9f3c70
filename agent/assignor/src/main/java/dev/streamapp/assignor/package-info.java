/**
 * The learner task assignor on Kafka Streams' public interface (KIP-924), and the way it hears from the agent in the same JVM.
 *
 * <p>Nothing here may let an exception out: one would stop the leader's stream thread, and then the next leader's.
 */
package dev.streamapp.assignor;
