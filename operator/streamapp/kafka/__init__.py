"""Reads Kafka, and makes the operator's two changes to a group: it triggers a rebalance, or evicts a member.

The only owner of kio, which encodes the messages; the connections are asyncio's own. docs/decisions/0002 says why no
client library is used. `cluster.KafkaCluster` is the entry point. `producer` writes the flight record, by a library in
a process of its own. Called by the controller. Every call has a deadline, raises only `KafkaAccessError` (and
`UndecodableError` for a member's bytes), and never blocks the event loop. Decides nothing: whether a rebalance or an
eviction is allowed is the core's decision.
"""
