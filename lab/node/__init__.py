"""The embedded lab: one Kubernetes node inside namespaces of its own.

`namespaces` is the outer side (start, enter, stop, clear what a killed lab left), `supervisor` is process 1 of the
inner side; `isolation`, `configuration` and `parts` are what the supervisor sets up, writes and starts.
Nothing here touches the host's network, mounts or sysctls; on the host remain one state folder and, until `down`,
cgroup folders under one name.
"""
