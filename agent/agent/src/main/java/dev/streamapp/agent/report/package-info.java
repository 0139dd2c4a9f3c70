/** Reads the instances, and makes the report and the answer to the readiness probe. */
package dev.streamapp.agent.report;
