"""A what-if gives what was seen under the present settings, what the operator would do under others, and its laws."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.analytics.__main__ import main
from streamapp.analytics.report.whatif.listing import compared
from streamapp.analytics.report.whatif.outcome import WhatIf, what_if
from streamapp.analytics.report.whatif.policy import Policy
from streamapp.analytics.synthetic.fleet import Fleet, make_apps
from streamapp.core.facts.snapshot import DesiredReplicas, DesiredSample
from tests.analytics.support.app_tables import Rows, at, played, rows_of
from tests.analytics.support.handmade import demo

LIMIT = 10_000
RATES = [{"scope": "subtopology", "subtopology": "0", "rate_p10": 20_000.0, "rate_p50": 40_000.0}]
Demand = Sequence[tuple[int, int]]
"""How many pods are desired, and for how many seconds."""


@dataclass(frozen=True)
class Pass:
    """What one second of the operator gave."""

    second: int
    desired: int
    granted: int


def operated(demand: Demand, window: int) -> list[Pass]:
    """The operator second by second, by its own rule of the stabilization window, with copies that are always ready."""
    wanted = [pods for pods, seconds in demand for _ in range(seconds)]
    changes = [(0, wanted[0]), *((n, wanted[n]) for n in range(1, len(wanted)) if wanted[n] != wanted[n - 1])]
    long_ago = at(0) - timedelta(days=2)
    found, granted = [], wanted[0]
    for second, pods in enumerate(wanted):
        known = [
            DesiredSample(at(since) if since else long_ago, number) for since, number in changes if since <= second
        ]
        desired = DesiredReplicas(replicas=pods, history=tuple(known))
        target = desired.highest_within(timedelta(seconds=window), at(second))
        assert target is not None
        granted = max(pods, min(granted, target))
        found.append(Pass(second, pods, granted))
    return found


def decisions(passes: Iterable[Pass]) -> list[dict[str, Any]]:
    """The passes as states of silver."""
    rows: list[dict[str, Any]] = []
    for one in passes:
        values: dict[str, Any] = {
            "desired": one.desired,
            "granted": one.granted,
            "actual": one.granted,
            "ready": one.granted,
        }
        is_held = one.desired < one.granted
        values |= {"verdict": "Hold" if is_held else "Steady", "reason": "Stabilizing" if is_held else "Steady"}
        if rows and {name: rows[-1][name] for name in values} == values:
            rows[-1]["t_end"] = at(one.second + 1)
        else:
            rows.append({**values, "hold_id": "", "t_start": at(one.second), "t_end": at(one.second + 1)})
    return rows


def told(rows: Rows, window: float = 0.0, **more: Rows) -> dict[str, Rows]:
    """The tables of an application with these decisions, and what gold says of them."""

    def total(value: Callable[[Mapping[str, Any]], float]) -> float:
        return math.fsum(value(row) * (row["t_end"] - row["t_start"]).total_seconds() for row in rows)

    return {
        "s_decision_interval": rows,
        "s_config": [{"valid_from": at(0), "stabilization_seconds": window, "lag_limit": LIMIT}],
        "g_autoscaler_daily": [{"replica_h": total(lambda row: row["actual"]) / 3600}],
        "g_hold_blame": [{"blame_s": total(lambda row: row["verdict"] == "Hold" or bool(row.get("hold_id")))}],
        "g_restore_profile": RATES,
        **more,
    }


def computed(tables: Mapping[str, Rows], *policies: Policy) -> WhatIf:
    found = what_if(rows_of(tables, 1), policies)
    assert found.refusal == ""
    return found


def figures(passes: Sequence[Pass]) -> tuple[float, int]:
    """Pod-hours and seconds held."""
    return sum(one.granted for one in passes) / 3600, sum(one.granted > one.desired for one in passes)


DEMAND = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 50)), min_size=1, max_size=12)


@given(DEMAND, st.integers(0, 40), st.integers(0, 80))
def test_another_window_gives_what_the_operators_own_rule_would_have_done(
    demand: Demand, window: int, other: int
) -> None:
    passes = operated(demand, window)
    found = computed(told(decisions(passes), window), Policy(window_s=other))
    assert (found.present.pod_h.mid, found.present.held_s.mid) == pytest.approx(figures(passes))
    wanted = operated(demand, other)
    # A shorter window ends stays of which the record says only how long they lasted, and whose rest is then estimated.
    if other >= window:
        (outcome,) = found.others
        assert (outcome.pod_h.mid, outcome.held_s.mid) == pytest.approx(figures(wanted))
        assert outcome.raises == sum(b.granted > a.granted for a, b in pairwise(wanted))


@given(DEMAND, st.integers(0, 40), st.lists(st.integers(0, 80), min_size=2, max_size=4))
def test_a_wider_window_never_shortens_holds_and_never_adds_a_change(
    demand: Demand, window: int, others: list[int]
) -> None:
    tables = told(decisions(operated(demand, window)), window)
    found = computed(tables, *(Policy(window_s=other) for other in sorted(others))).others
    for narrow, wide in pairwise(found):
        for part in ("low", "mid", "high"):
            assert getattr(narrow.held_s, part) <= getattr(wide.held_s, part) + 1e-6
            assert getattr(narrow.pod_h, part) <= getattr(wide.pod_h, part) + 1e-9
        assert (narrow.raises, narrow.removals) >= (wide.raises, wide.removals)


@given(DEMAND, st.integers(0, 40), st.integers(1, 6), st.integers(0, 5))
def test_bounds_give_what_the_operator_would_have_done_with_desired_replicas_within_them(
    demand: Demand, window: int, least: int, more: int
) -> None:
    found = computed(told(decisions(operated(demand, window)), window), Policy(least=least, most=least + more))
    within = [(min(max(pods, least), least + more), seconds) for pods, seconds in demand]
    (outcome,) = found.others
    assert (outcome.pod_h.mid, outcome.held_s.mid) == pytest.approx(figures(operated(within, window)))
    above = sum(seconds for pods, seconds in demand if pods > least + more)
    assert outcome.capped_h == pytest.approx(above / 3600)
    assert any("would have kept up" in note for note in outcome.notes) == (above > 0)


def waiting(start: float, lags: Sequence[int | None], old: int = 3, new: int = 2) -> list[dict[str, Any]]:
    """A scale-down that waits for copies, looked at every 10 s, and two more minutes with the replicas as desired."""
    held = {"desired": new, "granted": old, "actual": old, "verdict": "Hold", "hold_id": f"h{start}"}
    held["reason"] = "LearnersCatchingUp"
    rows = [
        {**held, "t_start": at(start + 10 * n), "t_end": at(start + 10 * n + 10), "furthest_lag": lag}
        for n, lag in enumerate(lags)
    ]
    done = {**held, "granted": new, "actual": new, "verdict": "Steady", "reason": "Steady", "hold_id": ""}
    over = start + 10 * len(lags)
    return [*rows, {**done, "t_start": at(over), "t_end": at(over + 120)}]


def grown(start: float, end: float, pods: int) -> dict[str, Any]:
    numbers = {"desired": pods, "granted": pods, "actual": pods}
    return {**numbers, "verdict": "Steady", "reason": "Steady", "hold_id": "", "t_start": at(start), "t_end": at(end)}


LAGS: tuple[int | None, ...] = (900_000, 400_000, 100_000, 45_000, 35_000, 19_000, 18_000, 12_000)


def slow() -> dict[str, Rows]:
    """Three scale-downs whose copies come within 50,000 slots at the fifth look, and go after eight."""
    rows: list[dict[str, Any]] = []
    for start in (0, 1000, 2000):
        rows += [grown(start, start + 100, 3), *waiting(start + 100, LAGS)]
        rows.append(grown(start + 300, start + 1000, 2))
    moved = {"direction": "down", "moved_tasks": 2}
    return told(rows, s_scale_episode=[{**moved, "t_event": at(start + 99)} for start in (0, 1000, 2000)])


def test_a_larger_lag_ends_each_hold_at_the_second_look_within_it_and_has_its_price() -> None:
    found = computed(slow(), Policy(lag=20_000), Policy(lag=50_000), Policy(lag=LIMIT), Policy(lag=5_000))
    twice, five, same, half = found.others
    assert found.seen.held_s == found.present.held_s.mid == same.held_s.mid == 240
    # The sixth and seventh look are within 20,000, the fourth and fifth within 50,000: 20 s and 40 s of 80 fall away.
    assert (twice.held_s.mid, five.held_s.mid) == (3 * 60, 3 * 40)
    assert found.present.pod_h.mid - five.pod_h.mid == pytest.approx(3 * 40 / 3600)
    # Two tasks of each of three removals restore 40,000 slots more, at 20,000 a second in the slow tenth.
    assert (five.stood.least, five.stood.most, same.stood.most) == (0, 3 * 2 * 2.0, 0)
    # 5,000 slots more to restore: nothing at least, 0.125 s usually, 0.25 s in the slow tenth.
    assert (half.held_s.low, half.held_s.mid, half.held_s.high) == pytest.approx((240, 240.375, 240.75))


@given(st.lists(st.integers(0, 200_000), min_size=2, max_size=6))
def test_a_larger_lag_never_lengthens_holds(lags: list[int]) -> None:
    found = computed(slow(), *(Policy(lag=lag) for lag in sorted(lags))).others
    for small, large in pairwise(found):
        assert small.held_s.mid >= large.held_s.mid - 1e-6
        assert small.held_s.high >= large.held_s.high - 1e-6
        assert small.stood.most <= large.stood.most + 1e-6


def test_a_hold_that_a_raise_ended_has_the_usual_rest_under_a_shorter_window() -> None:
    rows: list[dict[str, Any]] = []
    for start, rest in ((0, 20), (1000, 40), (2000, 60)):
        wait = {**grown(start + 100, start + 130 + rest, 3), "desired": 2, "verdict": "Hold", "reason": "Stabilizing"}
        rows += [grown(start, start + 100, 3), wait, grown(start + 130 + rest, start + 1000, 2)]
    away = {**grown(3100, 3125, 3), "desired": 2, "verdict": "Hold", "reason": "Stabilizing"}
    rows += [grown(3000, 3100, 3), away, grown(3125, 4000, 3)]
    found = computed(told(rows, window=30.0), Policy(window_s=0), Policy(window_s=10))
    now, soon = found.others
    # Without a window the pod goes after 24 s (a tenth), 40 s (half), 56 s: only the first is before the raise at 25 s.
    assert (found.present.raises, found.present.removals) == (3, 3)
    assert (now.held_s.low, now.held_s.mid, now.held_s.high) == (120 + 24, 120 + 25, 120 + 25)
    assert (soon.held_s.low, soon.held_s.high) == (150 + 25, 150 + 25)
    assert any("1 removals were not seen to their end" in note for note in now.notes)


def test_the_example_of_the_definitions() -> None:
    wait = {**grown(0, 50, 3), "desired": 2, "verdict": "Hold", "reason": "Stabilizing"}
    rows = [grown(-600, 0, 3), wait, grown(50, 120, 2), grown(120, 600, 3)]
    now, longer, longest = computed(told(rows, window=30.0), *(Policy(window_s=s) for s in (30, 60, 120))).others
    assert [one.held_s.mid for one in (now, longer, longest)] == [50, 80, 120]
    assert [(one.removals, one.raises) for one in (now, longer, longest)] == [(1, 1), (1, 1), (0, 0)]
    assert (longest.pod_h.mid - now.pod_h.mid) * 3600 == pytest.approx(70)


def test_a_pod_that_a_user_kept_stays_whatever_the_window() -> None:
    rows: list[dict[str, Any]] = []
    for start in (0, 1000, 2000):
        wait = {**grown(start + 100, start + 150, 3), "desired": 2, "verdict": "Hold", "reason": "Stabilizing"}
        rows += [grown(start, start + 100, 3), wait, grown(start + 150, start + 1000, 2)]
    kept = {**grown(3100, 3900, 3), "desired": 2, "verdict": "Hold", "reason": "HeldByUser"}
    rows += [grown(3000, 3100, 3), kept, grown(3900, 4000, 3)]
    found = computed(told(rows, window=30.0), Policy(window_s=0))
    assert found.others[0].held_s.high == 3 * 20 + 800


def changes(costs: Mapping[float, tuple[str, float, float]]) -> dict[str, Rows]:
    """Episodes by time, each with what tasks stood for it at least and at most."""
    episodes = [
        {"t_event": at(time), "direction": way, "moved_tasks": 1} for time, (way, _, _) in sorted(costs.items())
    ]
    outages = [
        {"cause": "scale", "t_stop": at(time + 5), "at_least_s": least, "at_most_s": most}
        for time, (_, least, most) in sorted(costs.items())
    ]
    crash = {"cause": "crash", "t_stop": at(5), "at_least_s": 100.0, "at_most_s": 100.0}
    return {"s_scale_episode": episodes, "s_outage": [*outages, crash]}


def test_changes_that_fall_away_cost_nothing_and_the_others_what_they_did() -> None:
    demand = [(2, 100), (3, 100), (2, 30), (3, 100), (2, 400)]
    costs = {
        100.0: ("up", 1.0, 2.0),
        200.0: ("down", 4.0, 8.0),
        230.0: ("up", 16.0, 32.0),
        330.0: ("down", 64.0, 128.0),
    }
    tables = told(decisions(operated(demand, 0)), 0.0, **changes(costs))
    found = computed(tables, Policy(window_s=60), Policy(most=2), Policy(window_s=10))
    wide, small, narrow = found.others
    assert found.seen.stood == found.present.stood == narrow.stood
    assert (found.present.stood.least, found.present.stood.most) == (85, 170)
    assert (wide.stood.least, wide.stood.most) == (65, 130)
    assert (small.stood.least, small.stood.most, small.raises, small.removals) == (0, 0, 0, 0)


def test_no_other_settings_are_computed_where_the_present_ones_are_missed() -> None:
    paused = [{**grown(0, 4000, 2), "desired": 5}, grown(4000, 4100, 2)]
    found = what_if(rows_of(told(paused), 1), [Policy(window_s=60)])
    assert (found.others, "misses the pod-hours" in found.refusal) == ((), True)
    assert found.pod_error is not None
    assert found.pod_error > 1
    empty = what_if(rows_of({}, 1))
    assert (empty.refusal, empty.others, empty.pod_error) == ("no decision is in the record", (), None)


@pytest.mark.parametrize("seed", range(4))
def test_the_present_settings_give_the_figures_of_synthetic_applications(seed: int) -> None:
    fleet = Fleet(seed=seed, days=3, apps=4)
    for app in make_apps(fleet):
        silver = played(fleet, app)
        tables = {**silver, **told(silver["s_decision_interval"])}
        found = what_if(rows_of(tables, fleet.days))
        assert found.refusal == ""
        assert found.pod_error == pytest.approx(0, abs=0.005)
        assert found.held_error == pytest.approx(0, abs=0.005)
        assert (found.present.raises, found.present.removals) == (found.seen.raises, found.seen.removals)
        assert [row[0] for row in compared(found)][:2] == ["seen", "as it was, computed"]


def test_the_command_shows_what_was_seen_first_and_its_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo(tmp_path)
    arguments = ["what-if", "--root", str(tmp_path), "--app", "demo/counter"]
    assert main([*arguments, "--window", "300", "--max", "3"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Arithmetic over what was seen, not a prediction")
    words = ("seen", "as it was, computed", "window 5 min", "at most 3 pods", "window 5 min, at most 3 pods")
    titles = [re.split(r"  +", line.strip())[0] for line in shown.splitlines()]
    assert tuple(title for title in titles if title in words) == words
    assert "Error of the present settings: +7.5 % of the pod-hours and -0.2 % of the time held." in " ".join(
        shown.split()
    )
    assert main([*arguments, "--json", "--replicas", "2"]) == 0
    found = json.loads(capsys.readouterr().out)["demo/counter"]
    assert [one["title"] for one in found["others"]] == ["always 2 pods"]
    assert found["others"][0]["pod_h"]["mid"] == pytest.approx(2 * 480 / 3600)
    assert main([*arguments, "--min", "3", "--max", "2"]) == 2
    assert main([*arguments, "--min", "3", "--replicas", "2"]) == 2
    assert main(["what-if", "--root", str(tmp_path), "--app", "demo/none"]) == 1
