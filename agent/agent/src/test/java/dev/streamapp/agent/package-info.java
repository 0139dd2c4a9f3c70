/** Tests of the agent: units, and the shipped jar in JVMs of its own (classes whose names end in IT). */
package dev.streamapp.agent;
