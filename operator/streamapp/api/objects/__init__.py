"""The objects that the operator makes of a StreamApp: StatefulSet, Service, budget, and what goes into pods.

`manifests` builds them; `agent_injection`, `volume_init` and `init_containers` are parts of the pod template.
"""
