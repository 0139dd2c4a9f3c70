"""No state waits for itself: whatever a decision waits for comes by its own next steps, or by a word that it names.

Two tables of states, each walked to where nothing changes any more. In the first a rollout brings the agent, and all
else is well: so an end that is neither the goal nor a question to the user is a circle. In the second pods are not
well, and stay so. An end that is not the goal then names the pod that somebody has to mend, or has a word for its user;
and what it asks for is tried.
"""

from dataclasses import replace
from itertools import product

import pytest

from streamapp.core.facts.policy import LearnerSource, RolloutPolicy, ScaleDownPolicy
from streamapp.core.reasons import Reason
from tests.support import ill_rollout
from tests.support.agent_rollout import PODS, World
from tests.support.ill_rollout import Health, IllWorld, Protocol
from tests.support.walk import walk

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


STAYING, LEAVING = (frozenset({0}), frozenset({1})), (frozenset({2}), frozenset({3}), frozenset({2, 3}))


def ill_worlds(ills: tuple[frozenset[int], ...], desired: int) -> tuple[IllWorld, ...]:
    """Each state with these pods not well."""
    newest = (NEWEST["no pod"], NEWEST["pods that stay"], NEWEST["pods that leave"], NEWEST["every pod"])
    return tuple(
        IllWorld(desired=desired, ills=ill, health=health, newest=new, protocol=protocol)
        for ill, health, new, protocol in product(ills, Health, newest, Protocol)
    )


def ends_well(world: IllWorld) -> bool:
    """Whether it ends at its goal; by its user's word, where brokers would move tasks cold though every pod is well."""
    end, decision = walk(world)
    reasons = {decision.reason, *(one.reason for one in decision.conditions)}
    return end.is_done or (Reason.WouldMoveCold in reasons and ends_at_once(end))


def ends_at_once(world: IllWorld) -> bool:
    """Whether its user's word brings it to its goal."""
    told = replace(world, rollout=RolloutPolicy.IMMEDIATE, scale_down=ScaleDownPolicy.IMMEDIATE)
    return walk(told)[0].is_done


@pytest.mark.guarantee(8)
@pytest.mark.parametrize("desired", [2, ill_rollout.PODS])
def test_a_pod_that_stays_and_is_not_well_is_named_and_all_goes_on_once_it_is_mended(desired: int) -> None:
    circles = []
    for world in ill_worlds(STAYING, desired):
        end, decision = walk(world)
        is_named = ill_rollout.whom_it_names(decision) >= end.ills
        if not end.is_done and not (is_named and ends_well(end.mended())):
            circles.append((world, decision.reason, decision.detail))
    assert circles == []


@pytest.mark.guarantee(8)
def test_a_pod_that_leaves_and_is_not_well_is_in_nobodys_way() -> None:
    """But a pod above it that runs leaves before it: beside a rollout that takes its user's word."""
    circles = []
    for world in ill_worlds(LEAVING, 2):
        end, decision = walk(world)
        runs_above = end.replicas - 1 not in end.ills or end.health is Health.UNREADY
        is_named = decision.reason is Reason.RolloutInProgress and ill_rollout.whom_it_names(decision) >= end.ills
        is_for_a_word = decision.reason is Reason.WouldMoveCold or (runs_above and is_named)
        if not end.is_done and not (is_for_a_word and ends_at_once(end)):
            circles.append((world, decision.reason, decision.detail))
    assert circles == []
