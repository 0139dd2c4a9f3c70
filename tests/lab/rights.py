"""Each right of the operator, beside the test that has it used: a right that no test uses is one too many."""

from collections.abc import Mapping

from streamapp.kube.objects.rights import RIGHTS

Right = tuple[str, str, str]
"""Group, resource with its subresource, verb; as the audit log has them."""

OF_NAMED_SECRETS: Right = ("", "secrets", "get")
"""Granted for each Secret that the chart's values name."""

GRANTED: frozenset[Right] = frozenset(
    {*((right.group, right.path, verb) for right in RIGHTS for verb in right.verbs), OF_NAMED_SECRETS}
)
"""What the chart's roles are made of."""


def _each(group: str, resource: str, *verbs: str) -> frozenset[Right]:
    return frozenset((group, resource, verb) for verb in verbs)


USED_IN: Mapping[str, frozenset[Right]] = {
    "stories/test_1_install.py": (
        _each("streamapp.dev", "streamapps", "get", "list", "watch")
        | _each("streamapp.dev", "streamapps/status", "patch")
        | _each("apps", "statefulsets", "get", "list", "watch", "patch")
        | _each("", "services", "get", "list", "watch", "patch")
        | _each("policy", "poddisruptionbudgets", "get", "list", "watch", "patch")
        | _each("", "pods", "list", "watch")
        | _each("", "persistentvolumeclaims", "list", "watch", "patch")
        | _each("", "nodes", "list", "watch")
        | _each("autoscaling", "horizontalpodautoscalers", "list")
        | _each("coordination.k8s.io", "leases", "get", "create", "patch")
    ),
    # A rollout deletes pods.
    "stories/test_2_hold.py": _each("", "pods", "delete") | _each("events.k8s.io", "events", "create"),
    # The authority of an agent's certificate.
    "test_66_agents_tls.py": frozenset({OF_NAMED_SECRETS}),
    # A pod that cannot be made.
    "test_68_failing_pods.py": _each("", "resourcequotas", "list"),
}
"""By file below `tests/lab`: what is used while its tests run, which is looked up in the audit log after them."""

NEVER_SEEN: Mapping[Right, str] = {
    ("streamapp.dev", "streamapps/finalizers", "update"): "asked for by OpenShift, when an owner is set",
    ("apps", "statefulsets", "create"): "an apply that makes an object is logged as a patch, and needs both",
    ("", "services", "create"): "the same",
    ("policy", "poddisruptionbudgets", "create"): "the same",
}
"""Rights that are needed although no request of their own is logged, each with its reason."""
