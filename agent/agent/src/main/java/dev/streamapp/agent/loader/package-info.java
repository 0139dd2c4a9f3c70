/** The agent's own class loader. */
package dev.streamapp.agent.loader;
