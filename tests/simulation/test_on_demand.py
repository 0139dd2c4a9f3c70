"""Learners on demand in the model: drained, moved and gone, with no standby before and none after."""

from collections.abc import Callable

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from streamapp.core.facts.agent_reports import AnnouncementState, Rebalance
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy
from tests.simulation.learner_model import LearnerGroupModel
from tests.simulation.test_cluster import BEFALLS, IS_THOROUGH, TASKS, Story

POLICY = ScalingPolicy(agent=True, source=LearnerSource.ON_DEMAND)


def a_story(replicas: int, policy: ScalingPolicy = POLICY, tasks: int = TASKS, *, follow_ups: bool = False) -> Story:
    """An application at rest, whose pods have nothing on their disks but what they run."""
    group = LearnerGroupModel(tasks, policy.acceptable_recovery_lag, follow_ups=follow_ups)
    story = Story(replicas, policy, group)
    story.seconds_to_rest(at_most=300)
    for thread in group.alive():
        group.volumes[thread.ordinal] = dict.fromkeys(thread.active, group.end)
    group.moved = 0
    return story


def learners(story: Story) -> LearnerGroupModel:
    assert isinstance(story.group, LearnerGroupModel)
    return story.group


def done(story: Story, what: str) -> list[str]:
    return [line.split(maxsplit=1)[1] for line in story.history if what in line]


def run_until(story: Story, happens: Callable[[], bool], at_most: int = 300) -> None:
    for _ in range(at_most):
        if happens():
            return
        story.run(1)
    raise AssertionError("\n".join(["it never happened", *story.history[-40:]]))


@pytest.mark.parametrize("rebalance", Rebalance)
def test_three_to_two_moves_what_must_move_and_nothing_to_a_cold_copy(rebalance: Rebalance) -> None:
    story = a_story(3, ScalingPolicy(agent=True, rebalance=rebalance))
    story.operator.desired = 2
    # half a minute of stabilization, then seconds
    assert story.seconds_to_rest(at_most=200) < 120
    assert done(story, "GrantReplicas") == ["Drained: GrantReplicas 3 to 2"]
    assert (learners(story).moved, learners(story).moves_to_cold) == (2, 0)


def test_six_to_three_in_one_step() -> None:
    story = a_story(6)
    story.operator.desired = 3
    story.seconds_to_rest(at_most=300)
    assert done(story, "GrantReplicas") == ["Drained: GrantReplicas 6 to 3"]
    assert (learners(story).moved, learners(story).moves_to_cold) == (3, 0)


def test_it_works_without_triggered_rebalance_by_the_assignors_own_follow_ups() -> None:
    story = a_story(
        3, ScalingPolicy(agent=True, source=LearnerSource.ON_DEMAND, trigger_rebalance=False), follow_ups=True
    )
    story.operator.desired = 2
    run_until(story, lambda: bool(done(story, "Announce 1 leave")))
    story.group.rebalance(story.now)  # the agent's announcement has none of its own; whatever comes next will do
    story.seconds_to_rest(at_most=300)
    assert (done(story, "GrantReplicas"), done(story, "TriggerRebalance")) == (["Drained: GrantReplicas 3 to 2"], [])


def test_a_cancel_half_way_brings_everybody_back() -> None:
    story = a_story(3)
    story.operator.desired = 2
    run_until(story, lambda: any(thread.standby for thread in story.group.alive()))
    story.operator.desired = 3
    story.run(6)
    states = {agent.state(story.now) for agent in learners(story).agents.values()}
    assert states == {AnnouncementState.EMPTY}
    story.seconds_to_rest(at_most=200)
    assert (story.cluster.statefulset.replicas, learners(story).moved) == (3, 0)


def test_an_operator_that_restarts_in_the_middle_goes_on_with_the_same_announcement() -> None:
    story = a_story(3)
    story.operator.desired = 2
    run_until(story, lambda: any(thread.standby for thread in story.group.alive()))
    before = {agent.epoch for agent in learners(story).agents.values()}
    story.operator.restart()
    story.operator.memory.wishes = []
    story.seconds_to_rest(at_most=300)
    assert len(before) == 1
    assert done(story, "GrantReplicas") == ["Drained: GrantReplicas 3 to 2"]


def test_an_operator_that_is_gone_is_forgotten_when_its_announcement_expires() -> None:
    story = a_story(3)
    story.operator.desired = 2
    run_until(story, lambda: any(thread.standby for thread in story.group.alive()))
    story.next_pass = story.now.replace(year=2030)
    story.run(60)
    states = {agent.state(story.now) for agent in learners(story).agents.values()}
    assert (states, story.cluster.statefulset.replicas) == ({AnnouncementState.EMPTY}, 3)


def test_a_silent_agent_holds_and_the_hold_goes_on_when_it_speaks_again() -> None:
    story = a_story(3)
    story.operator.desired = 2
    learners(story).silent = {0}
    story.run(120)
    assert done(story, "GrantReplicas") == []
    learners(story).silent = set()
    story.seconds_to_rest(at_most=300)
    assert done(story, "GrantReplicas") == ["Drained: GrantReplicas 3 to 2"]


def test_an_agent_that_repeats_an_old_report_holds() -> None:
    story = a_story(3)
    learners(story).stale = {2}
    story.operator.desired = 2
    story.run(120)
    assert done(story, "GrantReplicas") == []


def test_a_new_pod_gets_tasks_when_it_has_learned_and_within_seconds() -> None:
    story = a_story(3)
    story.operator.desired = 4
    assert story.seconds_to_rest(at_most=300) < 60
    assert learners(story).moves_to_cold == 0
    assert len(done(story, "TriggerRebalance")) <= 4


def test_one_more_pod_before_the_first_has_learned() -> None:
    story = a_story(3, tasks=12)
    story.operator.desired = 4
    run_until(story, lambda: any(thread.standby for thread in story.group.alive()))
    story.operator.desired = 5
    story.seconds_to_rest(at_most=300)
    assert learners(story).moves_to_cold == 0


def test_a_rollout_drains_each_pod_before_it_restarts() -> None:
    story = a_story(3)
    story.cluster.change_template("v2")
    story.seconds_to_rest(at_most=900)
    assert [line.split()[0] for line in done(story, "RestartPod")] == ["Steady:"] * 3
    assert learners(story).moves_to_cold == 0


AGENTS_BEFALL: dict[str, Callable[[Story, int], object]] = {
    **BEFALLS,
    "silent": lambda story, which: learners(story).silent.add(which),
    "speaks": lambda story, _: learners(story).speak(),
    "stale": lambda story, which: learners(story).stale.add(which),
}

HAPPENINGS = st.lists(
    st.tuples(
        st.sampled_from((1, 3, 8, 20, 45, 90)),
        st.sampled_from(["wish", "wish", *AGENTS_BEFALL]),
        st.integers(0, 4),
    ),
    max_size=8,
)


@pytest.mark.slow
@pytest.mark.timeout(3600 if IS_THOROUGH else 120)
@settings(
    max_examples=2000 if IS_THOROUGH else 30,
    phases=[*Phase] if IS_THOROUGH else [Phase.reuse, Phase.generate],
)
@given(HAPPENINGS, st.integers(2, 5))
def test_whatever_happens_no_pod_goes_with_a_task_and_all_comes_to_rest(
    happenings: list[tuple[int, str, int]], replicas: int
) -> None:
    story = a_story(replicas)
    try:
        for after, what, which in happenings:
            story.run(after)
            story.history.append(f"{story.now:%H:%M:%S} *** {what} {which}")
            AGENTS_BEFALL[what](story, which)
        story.operator.paused = False
        AGENTS_BEFALL["speaks"](story, 0)
        story.seconds_to_rest(at_most=1500)
    finally:
        note("\n".join(story.history))
