"""Reads and writes Kubernetes; the only owner of the kubernetes client.

`client.client.KubeClient` sends and receives plain dicts, with a deadline on every request, and raises only
`client.errors.KubeError`. `client.kinds` has the paths of the kinds. In `objects`, `statefulsets`, `owned_objects`,
`claims`, `pods`, `events`, `leases` and `status` are the operator's writes, one function each; `from_json` turns
objects into the core's values. Called by the controller and the command line. Decides nothing: whether a write is
allowed is the core's decision, carried in its fence.
"""
