"""READ and WRITE Kubernetes; the only owner of the kubernetes client.

`client.KubeClient` sends and receives plain dicts, with a deadline on every request, and raises only
`errors.KubeError`. `places` names what lies where; `statefulsets`, `children`, `claims`, `pods`, `events` and `status`
are the operator's writes, one function each; `facts` turns what was read into the core's values. Called by the
controller. Decides nothing: whether a write may be made is the core's judgement, carried in its fence.
"""
