/**
 * The agent. It finds Kafka Streams instances by their constructors, reads them through Kafka's public API by reflection, and answers the operator
 * over HTTP.
 *
 * <p>The agent contains its own failures: the application must not notice that it exists.
 */
package dev.streamapp.agent;
