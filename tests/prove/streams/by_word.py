"""What the judge asks where brokers do not describe a group, and a user's word alone lets its pods go.

Nothing is known of tasks then. So one pod goes at a time, everybody else is there and ready, no earlier pod is still on
its way out, and no volume goes with the pod. Asked is the truth of the write, as far as the API server showed it.
"""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Any

from tests.prove.kubelet import Nodes
from tests.prove.looks import FRESH, Seen

Json = dict[str, Any]


def is_given(app: Json | None, *, is_removal: bool) -> bool:
    """Whether the user lets pods leave, or restart, without copies."""
    part = "scaleDown" if is_removal else "rollout"
    return app is not None and app["spec"].get(part, {}).get("policy") == "Immediate"


def is_blind(seen: Seen) -> bool:
    """Whether brokers had just told a process that they cannot describe the group, or did while it judged."""
    return seen.statefulset_at - seen.undescribed_at <= FRESH


def shown_ready(pods: Iterable[Json]) -> frozenset[int]:
    """The ordinals that a list of pods shows as ready, those left out that are being deleted."""
    return frozenset(
        ordinal_of(pod)
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
        and {"type": "Ready", "status": "True"} in pod["status"].get("conditions", ())
    )


def wrong_with(
    nodes: Nodes,
    seen: Seen,
    going: AbstractSet[int],
    replicas: int,
    *,
    is_removal: bool,
    keeps_claim: Callable[[Json], str | None],
) -> str | None:
    """Say what is wrong with letting these ordinals go, if anything is.

    Args:
        nodes: The truth about containers.
        seen: What the process was told.
        going: The ordinals.
        replicas: Of the StatefulSet, before a removal.
        is_removal: Whether they leave; else one restarts.
        keeps_claim: Says of a pod why its claim would be lost with it.
    """
    if len(going) > 1:
        return f"{sorted(going)} at once, and nobody knows their tasks"
    lost = (keeps_claim(pod) for pod in nodes.pods() if is_removal and ordinal_of(pod) in going)
    if (why := next(filter(None, lost), None)) is not None:
        return why
    is_ill_itself = not is_removal and seen.ready is not None and seen.ready.isdisjoint(going)
    return _others(nodes, seen, frozenset(range(replicas)) - going, replicas, is_ill_itself=is_ill_itself)


def wrong_with_the_end_of_a_step(nodes: Nodes, seen: Seen, replicas: int, step: Json) -> str | None:
    """Say what is wrong with the word that the pods of a step are gone and the others well, if anything is.

    Args:
        nodes: The truth about containers.
        seen: What the process was told.
        replicas: Of the StatefulSet, after the removal, and perhaps after a raise as well.
        step: What the record said of the step: pods that a raise has brought since are not asked about.
    """
    return _others(nodes, seen, frozenset(range(min(replicas, step["to"]))), replicas, is_ill_itself=False)


def _others(nodes: Nodes, seen: Seen, staying: AbstractSet[int], replicas: int, *, is_ill_itself: bool) -> str | None:
    surplus = sorted(ordinal for ordinal in seen.ordinals if ordinal >= replicas)
    if surplus:
        return f"although {surplus} of an earlier step are still there"
    if seen.ready is None or is_ill_itself:
        return None
    missing = sorted(staying - seen.ready - _in_truth(nodes))
    return f"although {missing} are not ready" if missing else None


def ordinal_of(pod: Json) -> int:
    """The ordinal of a pod."""
    return int(pod["metadata"]["name"].rpartition("-")[2])


def _in_truth(nodes: Nodes) -> frozenset[int]:
    """The ordinals that take part and stay, whether that was shown or not."""
    leaving = {ordinal_of(pod) for pod in nodes.pods() if "deletionTimestamp" in pod["metadata"]}
    joined = {ordinal for ordinal, run in nodes.alive().items() if run.joined_at is not None}
    return frozenset(joined - leaving)
