"""The brokers of one Kafka cluster: connections that applications share, and the way of one application to them."""
