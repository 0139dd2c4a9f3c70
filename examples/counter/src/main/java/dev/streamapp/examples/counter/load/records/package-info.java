/** The records of the load generator: keys, values, order and pace. */
package dev.streamapp.examples.counter.load.records;
