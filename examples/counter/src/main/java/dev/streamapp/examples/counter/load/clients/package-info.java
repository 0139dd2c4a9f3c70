/** The load generator's Kafka clients. */
package dev.streamapp.examples.counter.load.clients;
