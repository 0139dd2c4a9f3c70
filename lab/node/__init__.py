"""The embedded lab: a Kubernetes node inside namespaces of its own, and a second one inside these if asked for.

`namespaces` is the outer side (start, enter, stop, clear what a killed lab left), `supervisor` is process 1 of the
inner side; `isolation`, `configuration` and `parts` are what the supervisor sets up, writes and starts. `second` keeps
the second node.
Nothing here touches the host's network, mounts or sysctls; on the host remain one state folder and, until `down`,
cgroup folders under one name.
"""
