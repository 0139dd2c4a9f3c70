/**
 * The agent: it catches Kafka Streams instances as they are constructed, reads them through Kafka's public API by reflection, and speaks with the
 * operator over HTTP. Whatever fails in here is contained: the application must not notice that the agent exists.
 */
package dev.streamapp.agent;
