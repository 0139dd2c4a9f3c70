/** The heartbeat of members of the streams group protocol: the cap that the operator asks for, and the interval in use. */
package dev.streamapp.agent.heartbeat;
