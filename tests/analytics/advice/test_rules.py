"""Advice finds what is planted and nothing where nothing is; each piece has its figures, vetoes and patch."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.analytics.__main__ import main
from streamapp.analytics.report.advice.model import Advice
from streamapp.analytics.report.advice.rules import advice, enough
from streamapp.analytics.report.rows import AppRows
from streamapp.analytics.synthetic.fleet import SICK_SHARE, Fleet, SyntheticApp, make_apps, volume
from tests.analytics.support.handmade import demo

Rows = Sequence[Mapping[str, Any]]
START = datetime(2026, 11, 1, tzinfo=UTC)
TABLES = (
    *("s_seen", "s_config", "g_restore_profile", "s_scale_episode", "s_assignment_interval", "s_decision_interval"),
    "s_outage",
)
SEEDS = 200
STINTS = 8
"""Of each volume in each subtopology."""


def advised(tables: Mapping[str, Rows], days: int = 28) -> list[Advice]:
    seen = [{"dt": f"2026-11-{day + 1:02d}"} for day in range(days)]
    rows: dict[str, Rows] = {**{table: [] for table in TABLES}, "s_seen": seen, **tables}
    return advice(
        AppRows({table: pa.Table.from_pylist([dict(row) for row in of_one]) for table, of_one in rows.items()})
    )


def profile(app: SyntheticApp, seed: int) -> Rows:
    """The rates of each volume as the generator draws them, summed up as gold does."""
    rng = np.random.default_rng([seed, app.index])
    rows: list[dict[str, Any]] = []
    for ordinal in range(5):
        for sub in range(2):
            drawn = app.speed(sub, ordinal) * rng.lognormal(0, 0.05, STINTS)
            row = {"scope": "volume", "subtopology": str(sub), "task": None, "volume": volume(app, ordinal)}
            rows.append({**row, "n_stints": STINTS, "rate_p50": quantiles(drawn, n=2)[0]})
    return rows


def steps(app: SyntheticApp) -> Rows:
    return [
        {
            "t_event": START + timedelta(seconds=at),
            "from_replicas": old,
            "to_replicas": new,
            "direction": "up" if new > old else "down",
            "actor": "HPA",
        }
        for at, old, new in app.events
    ]


@pytest.mark.slow
def test_planted_facts_are_found_and_nothing_else_in_two_hundred_fleets() -> None:
    found, missed, false = 0, 0, 0
    for seed in range(SEEDS):
        for app in make_apps(Fleet(seed=seed, days=2, apps=4)):
            pieces = advised({"g_restore_profile": profile(app, seed), "s_scale_episode": steps(app)}, 2)
            wanted = set()
            if app.sick_ordinal is not None:
                wanted.add(f"volume {volume(app, app.sick_ordinal)}")
            if app.flaps:
                wanted.add("HorizontalPodAutoscaler scaleUp window")
            knobs = {piece.knob for piece in pieces if not piece.is_empty}
            found, missed, false = (
                found + len(knobs & wanted),
                missed + len(wanted - knobs),
                false + len(knobs - wanted),
            )
    assert (found, missed, false) == (2 * SEEDS, 0, 0)


def test_a_slow_volume_has_its_rate_and_what_its_siblings_do() -> None:
    app = make_apps(Fleet(seed=1))[1]
    (piece,) = advised({"g_restore_profile": profile(app, 1)})
    assert piece.effect is not None
    assert piece.effect.mid == pytest.approx(1 / SICK_SHARE, rel=0.1)
    assert (piece.n, piece.days, piece.patch) == (2 * STINTS, 28, None)
    assert any("quota" in veto for veto in piece.vetoes)


def test_a_window_is_as_long_as_it_must_be_and_comes_as_a_patch() -> None:
    app = make_apps(Fleet(seed=1, days=2))[0]
    (piece,) = advised({"s_scale_episode": steps(app)}, 2)
    assert piece.patch == {"spec": {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 600}}}}
    assert piece.effect is not None
    assert piece.effect.mid == 6
    assert "only 2 of 14 days are known" in piece.vetoes
    by_hand = [{**step, "actor": "USER"} for step in steps(app)]
    assert [piece.is_empty for piece in advised({"s_scale_episode": by_hand}, 2)] == [True]


def spent(hours_by_pods: Mapping[int, int]) -> dict[str, Rows]:
    at = START
    decisions: list[dict[str, Any]] = []
    for pods, hours in hours_by_pods.items():
        decisions.append({"t_start": at, "t_end": at + timedelta(hours=hours), "actual": pods})
        at += timedelta(hours=hours)
    config = [{"valid_from": START, "tasks": 6, "stateful_tasks": [f"0_{n}" for n in range(6)], "standby_replicas": 0}]
    layouts = [{"threads": 1}]
    return {"s_decision_interval": decisions, "s_config": config, "s_assignment_interval": layouts}


def test_pods_that_take_no_task_from_the_busiest_thread_are_named_with_their_hours() -> None:
    (piece,) = advised(spent({3: 10, 4: 10, 5: 10, 6: 10}))
    assert (piece.current, piece.proposed) == ("4, 5 pods at times", "only 1, 2, 3, 6 pods")
    assert piece.effect is not None
    assert piece.effect.mid == 10 * 1 + 10 * 2
    assert [one.is_empty for one in advised(spent({3: 10, 6: 10}))] == [True]


@given(st.integers(1, 60), st.integers(1, 40), st.integers(1, 4))
def test_fewer_pods_are_enough_only_while_the_busiest_thread_has_no_more_tasks(
    tasks: int, pods: int, threads: int
) -> None:
    def busiest(count: int) -> int:
        return -(-tasks // (count * threads))

    least = enough(tasks, pods, threads)
    assert busiest(least) == busiest(pods)
    assert least == 1 or busiest(least - 1) > busiest(pods)


def test_a_warm_copy_is_advised_by_what_it_would_have_saved() -> None:
    crash = {"cause": "crash", "at_least_s": 300.0, "at_most_s": 360.0}
    scale = {**crash, "cause": "scale"}
    (piece,) = advised({**spent({3: 10}), "s_outage": [crash, crash, scale]})
    assert (piece.knob, piece.n) == ("num.standby.replicas", 2)
    assert piece.effect is not None
    assert (piece.effect.mid, piece.effect.high) == (600, 720)
    assert [one.is_empty for one in advised({**spent({3: 10}), "s_outage": [scale]})] == [True]


def test_the_command_says_so_where_there_is_nothing_to_advise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo(tmp_path)
    assert main(["advise", "--root", str(tmp_path)]) == 0
    assert "demo/second: nothing to advise: " in capsys.readouterr().out
    assert main(["advise", "--root", str(tmp_path), "--app", "demo/counter", "--json"]) == 0
    assert [*json.loads(capsys.readouterr().out)] == ["demo/counter"]
    assert main(["advise", "--root", str(tmp_path), "--app", "demo/none"]) == 1
    assert "no such application" in capsys.readouterr().err
