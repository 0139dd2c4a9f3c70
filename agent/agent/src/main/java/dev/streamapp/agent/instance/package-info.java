/** The Kafka Streams instances of this JVM, from their constructor to their close. */
package dev.streamapp.agent.instance;
