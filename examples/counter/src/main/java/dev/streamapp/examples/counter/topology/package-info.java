/** The topologies that the application can run, and the records and state that they share. */
package dev.streamapp.examples.counter.topology;
