/**
 * The learner task assignment as a pure function of the members' state. It uses no type of Kafka, no clock and no memory between rounds.
 *
 * <p>{@link dev.streamapp.assignor.core.LearnerAssignment} is the entry point; the other classes are its steps.
 * The values that go in and come out are in {@link dev.streamapp.assignor.core.model}.
 */
package dev.streamapp.assignor.core;
