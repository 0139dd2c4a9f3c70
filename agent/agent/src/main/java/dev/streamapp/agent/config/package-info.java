/** The configuration of an instance, and the defaults that the agent gives to unset settings. */
package dev.streamapp.agent.config;
