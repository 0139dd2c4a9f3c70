"""Writes the flight record to files and to a Kafka topic, and reads it back for `history`."""
