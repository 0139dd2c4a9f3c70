"""Outages as one process sees them: each once, with its range and with the cause that the pages define."""

from dataclasses import replace
from datetime import timedelta

import pytest

from streamapp.core.facts.agent_reports import AgentReport, TaskTimes
from streamapp.core.facts.group import Member
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.flightrecord.outages import NEAR, Looked, Outage, OutageLog
from tests.support import example
from tests.support.example import NOW, SECOND
from tests.support.watched import Watched


class Observed:
    """A log, and the application that it looks at every five seconds."""

    def __init__(self, app: Watched | None = None) -> None:
        self.app, self.log, self.at = app or Watched(), OutageLog(), 0.0
        self.outages: list[Outage] = []
        self.task_seconds = 0.0

    def see(self, seconds: float = 5.0, silent: tuple[int, ...] = ()) -> Looked:
        looked = self.log.look(self.app.look(self.at, silent))
        self.outages += looked.outages
        self.task_seconds += looked.task_seconds
        self.at += seconds
        return looked

    def until_told(self) -> None:
        for _ in range(8):
            self.see()

    @property
    def causes(self) -> dict[str, float]:
        """Seconds at most, by cause."""
        found: dict[str, float] = {}
        for one in self.outages:
            found[one.cause.value] = found.get(one.cause.value, 0.0) + one.at_most.total_seconds()
        return found


def test_without_an_outage_only_the_time_passes() -> None:
    seen = Observed()
    for _ in range(5):
        seen.see()
    assert (seen.outages, seen.task_seconds) == ([], 6 * 20)


def test_a_container_that_starts_anew_is_a_crash_and_is_told_half_a_minute_after_its_end() -> None:
    seen = Observed()
    seen.see()
    seen.see()
    seen.app.restart(1)
    seen.app.restoring = frozenset({2, 3})
    seen.see()
    seen.see()
    seen.app.restoring = frozenset({3})
    ended = seen.at
    told = seen.see(), seen.see(NEAR.total_seconds() - 10), seen.see()
    assert [one.outages for one in told] == [(), (), ()]
    [first] = seen.see().outages
    assert (first.task, first.cause.value, first.at_least, first.at_most) == ("0_2", "crash", 5 * SECOND, 15 * SECOND)
    assert first.ended == NOW + (ended - 0.5) * SECOND
    seen.app.restoring = frozenset()
    seen.until_told()
    assert [one.task for one in seen.outages] == ["0_2", "0_3"]
    assert all(one.at_least <= one.at_most for one in seen.outages)


@pytest.mark.parametrize(
    ("happens", "cause"),
    [
        ("restart", "crash"),
        ("replace", "eviction"),
        ("replace by another revision", "rollout"),
        ("move", "rebalance"),
        ("nothing", "unknown"),
    ],
)
def test_the_cause_is_what_changed_near_the_outage(happens: str, cause: str) -> None:
    seen = Observed()
    seen.see()
    seen.see()
    match happens:
        case "restart":
            seen.app.restart(2)
        case "replace":
            seen.app.replace_pod(2)
        case "replace by another revision":
            seen.app.replace_pod(2, revision="counter-newer")
        case "move":
            seen.app.owned = {0: (0, 1, 4, 5), 1: (2, 3), 2: ()}
        case _:
            seen.app.jvms[2] += 1  # another process in the same container
    seen.until_told()
    assert {one.task for one in seen.outages} == {"0_4", "0_5"}
    assert seen.causes == {cause: 10.0}


def test_the_first_cause_in_the_order_of_the_page_counts() -> None:
    seen = Observed()
    seen.see()
    seen.app.wish(2, seen.at)
    del seen.app.pods[2]
    seen.app.owned = {0: (0, 1, 4), 1: (2, 3, 5)}
    seen.see()
    seen.app.is_converged = True
    seen.until_told()
    assert set(seen.causes) == {"scale"}, "a scale-down is no rebalance, and its pod that went was not evicted"
    seen.at += 300
    seen.see()
    seen.app.restart(0)
    seen.until_told()
    assert set(seen.causes) == {"scale", "crash"}


def test_a_scale_up_after_a_scale_down_replaces_no_pod() -> None:
    seen = Observed()
    gone = seen.app.pods[2]
    seen.see()
    seen.app.wish(2, seen.at)
    del seen.app.pods[2]
    seen.app.owned = {0: (0, 1, 4), 1: (2, 3, 5)}
    seen.see()
    seen.app.is_converged = True
    seen.until_told()
    seen.at += 600
    seen.see()
    seen.app.wish(3, seen.at)
    seen.app.pods[2] = gone
    seen.app.replace_pod(2)
    seen.app.owned = {0: (0, 1), 1: (2, 3), 2: (4, 5)}
    seen.see()
    seen.app.is_converged = True
    seen.until_told()
    assert set(seen.causes) == {"scale"}


def test_a_new_leader_in_the_middle_of_a_scaling_counts_it_as_that() -> None:
    seen = Observed()
    seen.app.wish(2, -60)
    seen.app.granted = 3
    seen.see()
    seen.app.granted = 2
    del seen.app.pods[2]
    seen.app.owned = {0: (0, 1, 4), 1: (2, 3, 5)}
    seen.until_told()
    assert set(seen.causes) == {"scale"}


def test_a_change_that_was_over_long_before_is_no_cause() -> None:
    seen = Observed()
    seen.see()
    seen.app.restart(0)
    seen.until_told()
    assert seen.causes == {"crash": 10.0}
    seen.at += 60
    seen.see()
    seen.app.jvms[2] += 1
    seen.until_told()
    assert seen.causes == {"crash": 10.0, "unknown": 10.0}


def test_time_that_nobody_watched_does_not_count() -> None:
    seen = Observed()
    seen.see(3_600)
    seen.see()
    seen.see()
    assert seen.task_seconds == 6 * 5


@pytest.mark.parametrize(("follows", "seconds"), [(True, 15.0), (False, None)])
def test_what_does_not_run_at_the_first_look_counts_only_where_an_earlier_process_served_it(
    follows: bool, seconds: float | None
) -> None:
    seen = Observed()
    seen.log = OutageLog(follows=follows)
    seen.app.restoring = frozenset({0})
    for _ in range(3):
        seen.see()
    seen.app.restoring = frozenset()
    seen.until_told()
    assert [one.at_most.total_seconds() for one in seen.outages] == ([] if seconds is None else [seconds])


def test_where_there_are_no_agents_the_members_tell() -> None:
    seen = Observed(Watched(ScalingPolicy()))
    seen.see(20)
    seen.see(20)
    seen.app.owned = {0: (0, 1, 4, 5), 1: (2, 3), 2: ()}
    seen.see(20)
    seen.see(20)
    seen.see(20)
    assert {one.task for one in seen.outages} == {"0_4", "0_5"}
    assert {one.cause.value for one in seen.outages} == {"rebalance"}
    assert all(timedelta(0) < one.at_most <= 20 * SECOND for one in seen.outages)


class Earlier(Watched):
    """Task 0 stood for five seconds, a minute before the first look."""

    def _report(self, ordinal: int, member: Member, at: float) -> AgentReport:
        report = super()._report(ordinal, member, at)
        earlier = TaskTimes(example.task(0), NOW - 60 * SECOND, NOW - 65 * SECOND)
        return replace(report, task_times=(earlier,)) if ordinal == 0 else report


def test_an_outage_that_was_over_before_a_new_leader_looked_is_of_the_former_one() -> None:
    seen = Observed(Earlier())
    seen.log = OutageLog(follows=True)
    seen.until_told()
    assert seen.outages == []
