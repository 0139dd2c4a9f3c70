/**
 * Answers cases of the Python model with the real assignors, in one JVM for all cases.
 *
 * <p>Kafka's classes are reached by reflection, so that one build serves every release; the class path decides which.
 */
package dev.streamapp.assignor.reference;
