"""No state waits for itself: whatever a decision waits for comes by its own next steps, or by a word that it names.

The table of states of a rollout that brings the agent, each walked to where nothing changes any more. All else is well
there, so an end that is neither the goal nor a question to the user is a circle.
"""

from dataclasses import replace
from itertools import product

import pytest

from streamapp.core.facts.policy import LearnerSource, RolloutPolicy
from streamapp.core.reasons import Reason
from tests.support.agent_rollout import PODS, World, walk

NEWEST = {
    "no pod": frozenset[int](),
    "the first pod": frozenset({0}),
    "pods that stay": frozenset({0, 1}),
    "pods that leave": frozenset({2, 3}),
    "every pod": frozenset(range(PODS)),
}
WORLDS = tuple(
    World(
        desired=desired,
        has_standbys=standbys,
        is_topology_in_spec=in_spec,
        source=source,
        rollout=rollout,
        newest=newest,
    )
    for desired, standbys, in_spec, source, rollout, newest in product(
        (1, 2, PODS),
        (False, True),
        (False, True),
        (None, LearnerSource.ON_DEMAND),
        (RolloutPolicy.WHEN_CAUGHT_UP, RolloutPolicy.IMMEDIATE),
        NEWEST.values(),
    )
)


def test_every_state_ends_at_its_goal_or_with_a_question_that_one_word_answers() -> None:
    circles = []
    for world in WORLDS:
        end, decision = walk(world)
        if end.is_done:
            continue
        asked = decision.reason is Reason.FirstRestartUncovered or any(
            one.reason is Reason.FirstRestartUncovered for one in decision.conditions
        )
        is_answered = walk(replace(end, rollout=RolloutPolicy.IMMEDIATE))[0].is_done
        if world.rollout is RolloutPolicy.IMMEDIATE or not asked or not is_answered:
            circles.append((world, decision.reason, decision.detail))
    assert circles == []


@pytest.mark.parametrize("desired", [1, PODS])
def test_the_question_names_the_cost_and_the_command(desired: int) -> None:
    world = World(
        desired=desired,
        has_standbys=False,
        is_topology_in_spec=False,
        source=LearnerSource.ON_DEMAND,
        rollout=RolloutPolicy.WHEN_CAUGHT_UP,
    )
    end, decision = walk(world)
    assert end.newest == frozenset()
    kind = "Reconciling" if desired == PODS else "ScaleDownHeld"
    (told,) = [one.detail for one in decision.conditions if one.type == kind]
    pod, tasks = (0, 2) if desired == 1 else (3, 1)
    assert told == (
        f"The restart of ordinal {pod} stops {tasks} task{'s' if tasks > 1 else ''}; to restore elsewhere: records "
        "unknown, bytes unknown; silence: unknown."
    )
    assert '"policy":"Immediate"' in Reason.FirstRestartUncovered.next_step
    assert (decision.reason is Reason.FirstRestartUncovered) == (desired < PODS)


def test_pods_that_leave_restart_too_where_only_their_agents_can_end_the_hold() -> None:
    world = World(
        desired=1,
        has_standbys=False,
        is_topology_in_spec=False,
        source=LearnerSource.ON_DEMAND,
        rollout=RolloutPolicy.IMMEDIATE,
        newest=frozenset({0}),
    )
    end, _ = walk(world)
    assert (end.newest, end.is_done) == (frozenset(range(PODS)), True)
