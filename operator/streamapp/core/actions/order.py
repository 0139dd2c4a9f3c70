"""In which order the steps of a plan are made, which of them go together, and what a failure keeps from being made.

Called by the controller's applier. It decides nothing: whatever is in the plan was decided before.
"""

from collections.abc import Iterator
from itertools import groupby

from streamapp.core.actions.decision import (
    Evict,
    ExpandVolume,
    GrantReplicas,
    OpenBudget,
    Plan,
    RecordProcessId,
    RecordState,
    RestartPod,
    Step,
)


def growth_first(plan: Plan) -> tuple[Step, ...]:
    """Put a raise in front: it must not wait for a broker that one of the other steps would ask."""
    raises = tuple(step for step in plan if isinstance(step, GrantReplicas) and not step.is_removal)
    return (*raises, *(step for step in plan if step not in raises))


def together(plan: Plan) -> Iterator[Plan]:
    """Group the steps that are made with one call, or at the same time; all others are alone, in their order."""
    independent = (Evict, RecordProcessId, RecordState, ExpandVolume)
    numbered = enumerate(plan)
    for _, steps in groupby(numbered, lambda one: type(one[1]) if isinstance(one[1], independent) else one[0]):
        yield tuple(step for _, step in steps)


def rests_on_brokers(step: Step) -> bool:
    """Whether a step takes a pod, or lets one be evicted, because of what the brokers said."""
    is_removal = isinstance(step, GrantReplicas) and step.is_removal
    return is_removal or isinstance(step, RestartPod) or (isinstance(step, OpenBudget) and step.judged_at is not None)
