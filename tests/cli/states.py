"""StreamApps in every state that the operator can tell of."""

import json
from functools import cache
from itertools import product

from streamapp.core.facts.policy import ScalingPolicy
from tests.cli.showing import Json, a_resource
from tests.statuses import answer
from tests.support import state_table
from tests.support.state_table import GroupCondition, HoldState, LearnerState, WishState


@cache
def every_cell() -> tuple[Json, ...]:
    """A resource for each state of the state table; of those that say the same, one."""
    resources: dict[str, Json] = {}
    for desired, hold, learners, group in product(WishState, HoldState, LearnerState, GroupCondition):
        snapshot = state_table.a_snapshot(desired, hold, learners, group)
        status = answer(snapshot, policy=ScalingPolicy(allow_zero=desired is WishState.ZERO_ALLOWED))
        changes = {"spec.replicas": snapshot.app.desired.replicas, "spec.scaleDown": {"allowZero": True}}
        resource = a_resource(status, changes)
        says = [[one[key] for key in ("type", "status", "reason")] for one in status["conditions"]]
        resources[json.dumps([says, "scaleDown" in status])] = resource
    return tuple(resources.values())
