/** Prepares a stream thread that has copies alone for its first active task. The application's own code does not run here. */
package dev.streamapp.agent.warmup;
