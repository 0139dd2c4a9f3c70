/** Applications that the tests start in JVMs of their own, under the agent. They know nothing of it. */
package dev.streamapp.agent.apps;
