/** The operator's announcement of leaving processes: its form, and what holds now. */
package dev.streamapp.agent.announcement;
