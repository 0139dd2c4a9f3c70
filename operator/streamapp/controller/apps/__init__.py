"""One entry per application: its memory, and the poller of its consumer group with the connection to Kafka."""
