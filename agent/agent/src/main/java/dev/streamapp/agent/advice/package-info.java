/**
 * Code that is copied into Kafka's methods. It names only types of the JDK, because Kafka may live in a class loader that does not see the agent; it
 * finds the agent in {@link dev.streamapp.agent.meeting.Meeting}, whose name the compiler copies in too.
 */
package dev.streamapp.agent.advice;
