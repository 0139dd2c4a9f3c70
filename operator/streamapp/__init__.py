"""Scales Kafka Streams applications on Kubernetes without their users noticing.

The layers, from the top: `cli | controller | analytics`, then `kube | kafka | agents | flightrecord`, then
`api | wire`, then `core`, which decides and touches nothing.
A layer imports only from those below it; `docs/architecture.md` says why, import-linter sees to it.
"""
