/** The agent's way into Kafka's classes: the transformer, the hook that the advices call, and the map that they find it in. */
package dev.streamapp.agent.instrument;
