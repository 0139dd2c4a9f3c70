/** The agent's certificate: read from files, read again when they change, and a stand-in where there is none. */
package dev.streamapp.agent.tls;
