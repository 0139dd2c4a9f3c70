"""Floors: how few pods may stay, so that there can be as many copies, in as many zones, as the user asks for.

A StatefulSet drops its highest ordinals, so nobody chooses a pod by its zone: what stays is the pods from 0 up. Only
how many stay can be chosen, and that is what this answers. Called by `candidates`, `spread_gates` and the command line.
"""

from collections.abc import Mapping, Sequence

from streamapp.core.evidence.evidence import Evidence
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.tasks import TaskSet


def zones(evidence: Evidence) -> Mapping[Ordinal, str]:
    """The zone of each pod; a pod whose zone is not known is missing."""
    return {pod.ordinal: pod.zone for pod in evidence.snapshot.workload.pods if pod.zone}


def least_replicas(evidence: Evidence, target: int) -> int:
    """The fewest pods that may stay on the way to `target`, as `least_pods` has it.

    Args:
        evidence: The facts and the user's choice.
        target: Replicas at the end of the scale-down. With 0 no pod stays, so none needs a copy.
    """
    policy, task_set = evidence.policy, evidence.snapshot.task_set
    if target == 0 or (isinstance(task_set, TaskSet) and not task_set.stateful):
        return 0
    known, pods = zones(evidence), evidence.snapshot.workload.pods
    by_ordinal = [known.get(Ordinal(number), "") for number in range(len(pods))]
    return least_pods(policy.min_copies, policy.min_zones, by_ordinal)


def least_pods(copies: int | None, zones_of_copies: int | None, zones_by_ordinal: Sequence[str]) -> int:
    """The fewest pods, from ordinal 0 up, that can hold so many copies of a task in so many zones.

    Args:
        copies: `scaleDown.minCopies`.
        zones_of_copies: `scaleDown.minZones`.
        zones_by_ordinal: The zone of each pod. An empty one is not known, and counts as another zone: what tasks have
            is asked pod by pod in `spread_gates`.

    Returns:
        Where all pods are in too few zones, one more than there are.
    """
    return max(copies or 0, _spanning(zones_by_ordinal, zones_of_copies or 0))


def _spanning(zones_by_ordinal: Sequence[str], least: int) -> int:
    found = set[str | int]()
    for number, zone in enumerate(zones_by_ordinal):
        if len(found) >= least:
            return number
        found.add(zone or number)
    return len(zones_by_ordinal) + (len(found) < least)
