/** The HTTP server: token, deadlines and routes. */
package dev.streamapp.agent.server;
