/** The first class that the JVM loads of the agent. It is compiled for Java 8, so that an older JVM can load it and go on. */
package dev.streamapp.agent.premain;
