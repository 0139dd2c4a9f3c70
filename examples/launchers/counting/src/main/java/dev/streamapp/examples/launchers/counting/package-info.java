/** The topology that all launchers run. */
package dev.streamapp.examples.launchers.counting;
