/** One class, which lives in the boot loader: all others find it there. */
package dev.streamapp.agent.meeting;
