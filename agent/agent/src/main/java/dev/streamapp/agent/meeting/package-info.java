/** The one class of the agent that lives in the boot loader. */
package dev.streamapp.agent.meeting;
