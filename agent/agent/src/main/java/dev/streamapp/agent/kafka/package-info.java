/** Kafka Streams by reflection, its state directory, and the limits that a release sets. */
package dev.streamapp.agent.kafka;
