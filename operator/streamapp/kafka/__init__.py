"""READ Kafka, and the two writes to a group that the operator makes: the nudge and the eviction.

The only owner of kio, which knows the messages; connections are asyncio's own. docs/decisions/0002 says why no client
library is used. `cluster.Cluster` is the door. Called by the controller. Every call has a deadline, raises only
`KafkaAccessError` (and `UndecodableError` for a member's bytes), and never blocks the event loop. Decides nothing:
whether a group may be nudged or a member evicted is the core's judgement.
"""
