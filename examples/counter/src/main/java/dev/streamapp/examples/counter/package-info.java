/** An example application that counts records per key, and the command line that makes its input. */
package dev.streamapp.examples.counter;
