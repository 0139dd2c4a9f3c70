/** Installs the learner task assignor beside Kafka Streams, and keeps the results that it reports. */
package dev.streamapp.agent.assignor;
