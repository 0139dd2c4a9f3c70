/** Tests of the agent's certificate. */
package dev.streamapp.agent.tls;
