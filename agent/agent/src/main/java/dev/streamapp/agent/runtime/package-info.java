/** Threads and warnings of the agent. Neither may disturb the application. */
package dev.streamapp.agent.runtime;
