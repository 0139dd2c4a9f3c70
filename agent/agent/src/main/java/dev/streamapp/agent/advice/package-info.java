/**
 * Code that the transformer copies into Kafka's methods. Kafka's class loader may not see the agent, so the code names types of the JDK only.
 *
 * <p>It finds the agent in {@link dev.streamapp.agent.meeting.Meeting}. The compiler copies that name in as a constant.
 */
package dev.streamapp.agent.advice;
