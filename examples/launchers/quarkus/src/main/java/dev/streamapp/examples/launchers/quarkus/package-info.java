/** The counting application, started by Quarkus. */
package dev.streamapp.examples.launchers.quarkus;
