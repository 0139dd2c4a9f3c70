/**
 * The learner task assignment as a pure function of what the members show: no type of Kafka's, no clock, no memory between rounds.
 *
 * <p>{@link dev.streamapp.assignor.core.LearnerAssignment} is the entrance. Everything else is a value that goes in or comes out, or a step on the way.
 */
package dev.streamapp.assignor.core;
