"""A model cluster, perturbed at will, always comes to rest where the user wants it, and no guarantee breaks on the way.

After the harness of Kafka's own assignor tests: perturb, let it run, bound the time by theory. Hypothesis draws what
happens and when, and on failure prints the shortest such story with everything that the operator did.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from streamapp.core.actions.decision import Decision, Verdict
from streamapp.core.facts.group import GroupState
from streamapp.core.facts.policy import ScalingPolicy
from tests.simulation.kafka_model import GroupModel
from tests.simulation.kubernetes_model import ClusterModel
from tests.simulation.operator_model import OperatorModel
from tests.support.example import NOW

IS_THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
SECOND = timedelta(seconds=1)
POLICY = ScalingPolicy()
TASKS = 6


class Story:
    """The model cluster with its operator, second by second."""

    def __init__(self, replicas: int, policy: ScalingPolicy = POLICY, group: GroupModel | None = None) -> None:
        self.now = NOW
        self.history: list[str] = []
        self.group = group or GroupModel(TASKS, policy.acceptable_recovery_lag)
        self.cluster = ClusterModel(self.group, replicas, self.now)
        self.operator = OperatorModel(self.cluster, self.group, policy, self.history)
        self.next_pass = self.now
        self.frozen: Decision | None = None

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += SECOND
            self.cluster.tick(self.now)
            self.group.tick(self.now)
            self.operator.watch(self.now)
            if self.now >= self.next_pass:
                decision = self.operator.decide(self.now)
                self.operator.apply(decision, self.now)
                self.next_pass = self.now + min(decision.requeue_after, 5 * SECOND)

    def is_at_rest(self) -> bool:
        """As many as wished for, nothing on record, everything converged as the operator itself sees it."""
        own, last = self.cluster.statefulset, self.operator.last
        return (
            own.replicas == self.operator.desired
            and own.record is None
            and last is not None
            and last.verdict is Verdict.STEADY
            and (last.convergence.is_converged or self._is_one_alone())
            and all(pod.revision == own.update_revision for pod in self.cluster.pods.values())
        )

    def _is_one_alone(self) -> bool:
        """A single member cannot be rebalanced, so nobody ever learns that its tasks run."""
        return len(self.group.threads) == 1 and self.group.state is GroupState.STABLE

    def seconds_to_rest(self, at_most: int) -> int:
        for waited in range(at_most):
            if self.is_at_rest():
                return waited
            self.run(1)
        last = self.operator.last
        state = "no decision" if last is None else f"{last.verdict.value}: {last.reason.name} {last.detail}"
        raise AssertionError("\n".join([f"not at rest after {at_most} s: {state}", *self.history[-60:]]))


@dataclass(frozen=True)
class Happens:
    """Something befalls the cluster, some time after what befell it before."""

    after: int
    what: str
    which: int

    def to(self, story: Story) -> None:
        story.run(self.after)
        story.history.append(f"{story.now:%H:%M:%S} *** {self.what} {self.which}")
        BEFALLS[self.what](story, self.which)


def _freeze(story: Story, _: int) -> None:
    """The process stops between its decision and its writes, and another takes over."""
    story.frozen = story.operator.decide(story.now)
    story.operator.restart()


def _thaw(story: Story, _: int) -> None:
    """The old process sends now what it had decided; only its fence stands in the way."""
    if story.frozen is not None:
        story.operator.apply(story.frozen, story.now)
        story.frozen = None


def _delete(story: Story, ordinal: int) -> None:
    pod = story.cluster.pods.get(ordinal)
    if pod is not None:
        story.cluster.delete_pod(pod.uid, story.now)


BEFALLS: dict[str, Callable[[Story, int], object]] = {
    "wish": lambda story, which: setattr(story.operator, "wish", 1 + which),
    "crash": lambda story, which: story.cluster.crash(which, story.now),
    "lose": lambda story, which: story.cluster.lose(which, story.now),
    "delete": _delete,
    "brokers down": lambda story, _: setattr(story.operator, "kafka_down_until", story.now + 20 * SECOND),
    "operator restarts": lambda story, _: story.operator.restart(),
    "operator freezes": _freeze,
    "operator thaws": _thaw,
    "template": lambda story, which: story.cluster.change_template(f"v{which}"),
    "pause": lambda story, _: setattr(story.operator, "paused", not story.operator.paused),
}

EVENTS = st.builds(
    Happens,
    after=st.sampled_from((1, 3, 8, 20, 45, 90)),
    what=st.sampled_from(["wish", "wish", *BEFALLS]),
    which=st.integers(0, 4),
)


@pytest.mark.timeout(3600 if IS_THOROUGH else 120)
@settings(
    max_examples=3000 if IS_THOROUGH else 40,
    phases=[*Phase] if IS_THOROUGH else [Phase.reuse, Phase.generate],  # a story takes seconds; shrinking takes many
)
@given(st.lists(EVENTS, max_size=8), st.integers(1, 4))
def test_whatever_happens_the_cluster_comes_to_rest_and_no_guarantee_breaks(
    events: list[Happens], replicas: int
) -> None:
    story = Story(replicas)
    try:
        for one in events:
            one.to(story)
        story.operator.paused = False
        # a session timeout or two, then for each pod too many: two readings, a step, its close; and a rollout likewise
        too_many = max(0, story.cluster.statefulset.replicas - story.operator.desired)
        story.seconds_to_rest(at_most=600 + 240 * (too_many + 5))
    finally:
        note("\n".join(story.history))


def test_an_application_starts_from_nothing_and_converges() -> None:
    assert Story(3).seconds_to_rest(at_most=120) < 120


@pytest.mark.parametrize(("before", "after"), [(1, 3), (2, 4), (3, 4)])
def test_a_scale_up_converges_in_seconds_instead_of_probing_intervals(before: int, after: int) -> None:
    story = Story(before)
    story.seconds_to_rest(at_most=200)
    story.operator.desired = after
    assert story.seconds_to_rest(at_most=400) < 400


def test_a_scale_down_takes_one_pod_after_the_other() -> None:
    story = Story(4)
    story.seconds_to_rest(at_most=200)
    story.operator.desired = 1
    story.seconds_to_rest(at_most=900)
    grants = [line.split(maxsplit=1)[1] for line in story.history if "GrantReplicas" in line]
    assert grants == [
        "Covered: GrantReplicas 4 to 3",
        "Covered: GrantReplicas 3 to 2",
        "Covered: GrantReplicas 2 to 1",
    ]


def test_the_member_of_a_pod_that_went_is_put_out_long_before_its_session_ends() -> None:
    story = Story(3)
    story.seconds_to_rest(at_most=200)
    story.operator.desired = 2
    away: list[float] = []
    while story.cluster.statefulset.replicas == 3 or story.group.state is not GroupState.STABLE:
        story.run(1)
        dead = [thread.died_at for thread in story.group.threads.values() if thread.died_at is not None]
        away += [(story.now - died).total_seconds() for died in dead]
    assert max(away, default=0) <= 2


def test_a_raise_in_the_middle_of_everything_is_granted_with_the_next_pass() -> None:
    story = Story(4)
    story.seconds_to_rest(at_most=200)
    story.operator.desired = 1
    while story.cluster.statefulset.replicas == 4:
        story.run(1)
    story.operator.desired = 5
    story.run(5)
    assert story.cluster.statefulset.replicas == 5
