"""What a run of chaos says of itself: whom it blames for a gap, and when it is not good."""

from dataclasses import fields
from typing import Any

import pytest

from lab.commands.chaos import count_rows, gap_rows, gap_titles
from lab.meter.counts import CountReport
from lab.meter.gaps import Gap
from lab.scenarios.chaos.outcome import (
    NOTHING,
    REMEMBERED_MS,
    CameTo,
    LongGap,
    Outcome,
    Played,
    cause_of,
    count_faults,
    long_gaps,
)
from lab.scenarios.chaos.script import Act, Danger


def played(
    danger: Danger, application: str | None, began_ms: int, ended_ms: int = 0, came_to: CameTo = CameTo.DONE
) -> Played:
    return Played(Act(0.0, danger, application), began_ms, ended_ms or began_ms + 100, came_to, "")


def counts(**figures: Any) -> CountReport:
    kinds = {one.name: () if one.name.endswith("examples") else 0 for one in fields(CountReport)}
    return CountReport(**{**kinds, "exactly_once": False, "inputs": 10, **figures})


def outcome(**parts: Any) -> Outcome:
    made: dict[str, Any] = {"played": (), "gaps": (), "counts": {}, "faults": ()} | parts
    return Outcome(seed=1, seconds=480, began_at="2026-01-01 00:00", settled_seconds=20, **made)


def test_a_gap_is_blamed_on_the_latest_danger_that_struck_the_application() -> None:
    acts = [
        played(Danger.ROLLOUT, "one", 10_000),
        played(Danger.KILL, "one", 20_000),
        played(Danger.KILL, "two", 29_000),
    ]
    assert cause_of(30_000, "one", acts) == Danger.KILL
    assert cause_of(19_500, "one", acts) == Danger.KILL
    assert cause_of(12_000, "one", acts) == Danger.ROLLOUT


def test_what_strikes_the_cluster_strikes_every_application() -> None:
    acts = [played(Danger.EVICT, "one", 10_000), played(Danger.BROKER_FROZEN, None, 20_000, 25_000)]
    assert cause_of(26_000, "one", acts) == cause_of(26_000, "two", acts) == Danger.BROKER_FROZEN


@pytest.mark.parametrize("came_to", [CameTo.SKIPPED, CameTo.FAILED])
def test_what_was_not_done_is_not_blamed(came_to: CameTo) -> None:
    assert cause_of(10_500, "one", [played(Danger.KILL, "one", 10_000, came_to=came_to)]) == NOTHING


def test_a_danger_is_remembered_from_its_end() -> None:
    drain = [played(Danger.DRAIN, None, 10_000, 100_000)]
    assert cause_of(100_000 + REMEMBERED_MS, "one", drain) == Danger.DRAIN
    assert cause_of(100_001 + REMEMBERED_MS, "one", drain) == NOTHING


def test_the_worst_gap_is_of_one_danger_and_one_application() -> None:
    acts = [played(Danger.KILL, "one", 10_000), played(Danger.DELETE, "one", 50_000)]
    found = {
        0: [Gap(10_200, 12_200, 0, open=False), Gap(50_100, 54_100, 0, open=False)],
        3: [Gap(10_100, 13_100, 0, open=False)],
    }
    one = outcome(gaps=long_gaps("one", found, acts), played=tuple(acts), counts={"one": counts(), "two": counts()})
    assert (one.worst(Danger.KILL, "one"), one.worst(Danger.DELETE, "one")) == (3.0, 4.0)
    assert (one.worst(Danger.KILL, "two"), one.worst(NOTHING, "one")) == (None, None)
    rows = {row[0]: row[1:] for row in gap_rows(one)}
    assert rows["kill"] == ("1", "0", "0", "3.00", "-")
    assert gap_titles(one)[-2:] == ("worst gap, one (s)", "worst gap, two (s)")


def test_a_gap_without_a_cause_is_in_the_table() -> None:
    one = outcome(gaps=(LongGap("one", 0, 1, 2.5, NOTHING),), counts={"one": counts()})
    assert [*gap_rows(one)][-1] == (NOTHING, "-", "-", "-", "2.50")


def test_counts_that_break_a_promise_are_a_fault_and_doubles_of_at_least_once_are_none() -> None:
    found = {
        "kept": counts(doubled=3),
        "lost": counts(lost=2),
        "doubled": counts(exactly_once=True, doubled=1),
    }
    assert count_faults(found) == (
        "lost: lost; 10 inputs, 2 lost, 0 doubled",
        "doubled: doubled; 10 inputs, 0 lost, 1 doubled",
    )
    assert (outcome().is_good, outcome(faults=count_faults(found)).is_good) == (True, False)
    assert next(iter(count_rows(outcome(counts=found)))) == ("kept", "10", "0", "3", "kept")


def test_all_figures_go_into_the_file() -> None:
    document = outcome(counts={"one": counts(lost=1)}, played=(played(Danger.KILL, "one", 1),)).to_json()
    assert document["counts"]["one"]["verdict"] == "lost"
    assert document["played"][0]["act"]["danger"] == "kill"
