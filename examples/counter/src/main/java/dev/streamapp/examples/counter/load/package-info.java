/** The commands of the load generator and their options. */
package dev.streamapp.examples.counter.load;
