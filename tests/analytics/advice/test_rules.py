"""Advice finds what is planted and nothing where nothing is; each piece has its figures, vetoes and patch."""

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.analytics.__main__ import main
from streamapp.analytics.report.advice.facts import enough
from streamapp.analytics.report.advice.model import Advice
from streamapp.analytics.report.advice.rules import advice
from streamapp.analytics.report.advice.volumes import with_nodes
from streamapp.analytics.report.rows import AppRows
from streamapp.analytics.synthetic.fleet import DAY, SICK_SHARE, Fleet, SyntheticApp, make_apps, volume
from tests.analytics.support.app_tables import START, STINTS, Rows, at, played, profile, rows_of, steps
from tests.analytics.support.handmade import demo

SEEDS = 200
"""Fleets over which `python -m tests.analytics.advice.test_rules` counts."""


def advised(tables: Mapping[str, Rows], days: int = 28) -> list[Advice]:
    return advice(rows_of(tables, days))


def planted(app: SyntheticApp) -> set[str]:
    """What is to be advised. Of twelve tasks five pods run no more at once than four; six do, which flap."""
    wanted = {"HorizontalPodAutoscaler scaleUp window"} if app.flaps else {"replicas"}
    wanted |= {"size of the volumes", "raises without throughput"} if app.skewed else set()
    wanted |= {f"HorizontalPodAutoscaler {app.name} minimum"} if app.wants_fewer else set()
    return wanted | ({f"volume {volume(app, app.sick_ordinal)}"} if app.sick_ordinal is not None else set())


def found_in(seeds: range) -> Counter[str]:
    """Facts that were found and missed, and advice without a fact, over so many fleets."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        fleet = Fleet(seed=seed, days=2, apps=4)
        for app in make_apps(fleet):
            knobs = {piece.knob for piece in advised(played(fleet, app), 2) if not piece.is_empty}
            counts.update(found=len(knobs & planted(app)), missed=len(planted(app) - knobs))
            counts.update(false=len(knobs - planted(app)))
    return counts


def test_planted_facts_are_found_and_nothing_else() -> None:
    assert found_in(range(3)) == Counter(found=3 * 8, missed=0, false=0)


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
    config = [{**row, "lag_limit": 10_000} for row in config]
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


def holds(lags: Sequence[int | None], count: int) -> list[dict[str, Any]]:
    """Scale-downs that wait for copies, looked at every 30 s."""
    told = {"verdict": "Hold", "reason": "LearnersCatchingUp", "actual": 3}
    return [
        {
            **told,
            "hold_id": f"h{hold}",
            "t_start": at(7200 * hold + 30 * look),
            "t_end": at(7200 * hold + 30 * look + 30),
            "furthest_lag": lag,
        }
        for hold in range(count)
        for look, lag in enumerate(lags)
    ]


TAIL = [900_000, None, 400_000, 25_000, 22_000, 19_000, 16_000, 14_000, 12_000, 9_000]
"""Copies that follow closely and come within the limit of 10,000 only late."""
RATES = [{"scope": "subtopology", "subtopology": "0", "n_stints": 9, "rate_p10": 40_000.0, "rate_p50": 50_000.0}]


def test_a_larger_lag_has_what_it_saves_of_each_hold_and_its_price() -> None:
    config = [{"valid_from": START, "lag_limit": 10_000}]
    tables: dict[str, Rows] = {"s_config": config, "g_restore_profile": RATES, "s_decision_interval": holds(TAIL, 6)}
    (piece,) = advised(tables)
    # Of the ten looks of a hold the fifth is the second within 20,000 … 40,000 slots are a second's restoring.
    assert (piece.knob, piece.proposed, piece.n) == ("acceptableRecoveryLag", "20,000", 6)
    assert piece.patch == {"spec": {"learners": {"acceptableRecoveryLag": 20_000}}}
    assert piece.effect is not None
    assert (piece.effect.low, piece.effect.mid, piece.effect.high) == (120, 120, 120)
    assert "0.5 s longer" in piece.vetoes[0]
    few = {**tables, "s_decision_interval": holds(TAIL, 4)}
    slow = {**tables, "g_restore_profile": [{**RATES[0], "rate_p10": 10_000.0}]}
    far = {**tables, "s_decision_interval": holds([900_000, 700_000, 400_000, 9_000], 6)}
    assert [one.is_empty for other in (few, slow, far) for one in advised(other)] == [True] * 3


def test_an_autoscaler_at_its_maximum_gets_the_next_count_that_pays() -> None:
    hpa = {"name": "hpa", "aims_at": "StreamApp", "max_replicas": 3, "is_active": True}
    bounds = [
        {**hpa, "desired_replicas": 3, "t_start": at(0), "t_end": at(36_000)},
        {**hpa, "desired_replicas": 2, "t_start": at(36_000), "t_end": at(72_000)},
    ]
    tables: dict[str, Rows] = {**spent({3: 10, 2: 10}), "s_autoscaler_interval": bounds}
    (piece,) = advised(tables)
    # Six tasks on three pods are two each, and so they are on four and five.
    assert (piece.current, piece.proposed, piece.patch) == ("3 pods", "6 pods", {"spec": {"maxReplicas": 6}})
    assert piece.effect is not None
    assert piece.effect.high == 10
    all_have_one = [{**row, "max_replicas": 6} for row in bounds]
    assert [one.is_empty for one in advised({**tables, "s_autoscaler_interval": all_have_one})] == [True]


def wanting(low_h: float, least: int = 4, name: str = "hpa") -> dict[str, Rows]:
    """An autoscaler that is at its minimum for ten hours, and wants fewer for some of them."""
    hpa = {"name": name, "aims_at": "StreamApp", "min_replicas": least, "max_replicas": 8, "is_active": True}
    low, ten = low_h * 3600, 36_000.0
    bounds = [
        {**hpa, "desired_replicas": least, "limited_by": "TooFewReplicas", "t_start": at(0), "t_end": at(low)},
        {**hpa, "desired_replicas": least, "limited_by": "", "t_start": at(low), "t_end": at(ten)},
    ]
    return {**spent({3: 10}), "s_autoscaler_interval": bounds}


def test_an_autoscaler_that_wants_fewer_than_its_minimum_gets_a_lower_one() -> None:
    (piece,) = advised(wanting(4, least=5))
    # Six tasks on four pods are two at most, and so they are on three.
    assert (piece.current, piece.proposed, piece.patch) == ("5 pods", "3 pods", {"spec": {"minReplicas": 3}})
    assert piece.effect is not None
    assert (piece.effect.low, piece.effect.mid, piece.effect.high) == (4, 6, 8)
    assert any("up to 2 stateful tasks" in veto for veto in piece.vetoes)
    assert not any("KEDA" in veto for veto in piece.vetoes)
    (of_keda,) = advised(wanting(4, least=5, name="keda-hpa-orders"))
    assert any("minReplicaCount" in veto for veto in of_keda.vetoes)
    assert [one.is_empty for other in (wanting(2), wanting(10, least=1)) for one in advised(other)] == [True] * 2


GIB = 2**30


def filled(days: int, first: float, growth: float, size: float = 10, volume: str = "v0") -> list[dict[str, Any]]:
    """A volume by day, in GiB."""
    return [
        {
            "dt": f"2026-11-{day + 1:02d}",
            "volume": volume,
            "state_bytes": int((first + growth * day) * GIB),
            "free_bytes": int((size - first - growth * day) * GIB),
            "requested_bytes": int(size * GIB),
        }
        for day in range(days)
    ]


def test_a_volume_that_is_nearly_full_gets_room_for_half_as_much_again() -> None:
    (piece,) = advised({"g_volume_daily": [*filled(3, 8.5, 0), *filled(3, 3, 0, volume="v1")]})
    assert (piece.current, piece.proposed, piece.n) == ("10 GiB", "13 GiB", 3)
    assert "1 of 2 volumes" in piece.evidence
    assert "of v0 85 % is in use" in piece.evidence
    assert any("its growth is not known" in veto for veto in piece.vetoes)
    storage = {"resources": {"requests": {"storage": "13Gi"}}}
    assert piece.patch == {"spec": {"state": {"volumeClaimTemplate": storage}}}
    assert piece.effect is not None
    assert piece.effect.mid == pytest.approx(13 - 8.5)
    assert [one.is_empty for one in advised({"g_volume_daily": filled(28, 7.5, 0)})] == [True]


def test_a_volume_that_grows_is_named_a_month_before_it_is_full() -> None:
    (piece,) = advised({"g_volume_daily": filled(10, 4, 0.2)})
    # 5.8 GiB on the tenth day, and 6 GiB more in thirty days.
    assert piece.proposed == "18 GiB"
    assert "grew by 205 MiB a day" in piece.evidence
    assert not any("growth" in veto for veto in piece.vetoes)
    slow, short = filled(10, 4, 0.1), filled(6, 4, 0.2)
    assert [one.is_empty for rows in (slow, short) for one in advised({"g_volume_daily": rows})] == [True] * 2


def raised(gains: Sequence[float], pods: int = 4, actor: str = "HPA") -> list[dict[str, Any]]:
    row = {"actor": actor, "from_replicas": pods, "to_replicas": pods + 1, "pod_h": 2.0, "rate_before": 1000.0}
    return [{**row, "rate_after": 1000.0 * (1 + gain)} for gain in gains]


def test_raises_that_bring_no_throughput_are_named_from_the_first_number_of_pods_on() -> None:
    useless, useful = [-0.02, 0.0, 0.01, 0.03, 0.3], [0.5] * 6
    (piece,) = advised({"g_raise": [*raised(useless), *raised(useful, pods=3)]})
    assert (piece.current, piece.n, piece.patch) == ("raises from 4 pods on", 5, {"spec": {"maxReplicas": 4}})
    assert "4 of 5 raises from 4 pods on" in piece.evidence
    assert piece.effect is not None
    assert (piece.effect.low, piece.effect.mid, piece.effect.high) == (2, 8, 10)
    few, by_hand = raised(useless[:4]), raised(useless, actor="USER")
    unknown = [{**row, "rate_after": None} for row in raised(useless)]
    for rows in (few, by_hand, unknown, raised(useful)):
        assert [one.is_empty for one in advised({"g_raise": rows})] == [True]


def test_the_present_window_of_the_autoscaler_is_named() -> None:
    app = make_apps(Fleet(seed=1, days=2))[0]
    hpa = {"name": "cpu", "is_active": True, "t_start": at(0), "t_end": at(9), "up_window_seconds": 15.0}
    (piece,) = advised({"s_scale_episode": steps(app), "s_autoscaler_interval": [hpa]}, 2)
    assert (piece.current, piece.name) == ("15 s", "cpu")


def used(ordinal: int, *times: tuple[float, float]) -> list[dict[str, Any]]:
    """When a claim was in use, in days."""
    claim = {"ordinal": ordinal, "volume": f"state-a-{ordinal}", "state_bytes": 3_000_000_000, "is_gone": False}
    return [{**claim, "t_start": at(since * DAY), "t_end": at(until * DAY)} for since, until in times]


def test_claims_that_nobody_used_for_a_week_are_leftovers() -> None:
    lived = [*used(0, (0, 28)), *used(1, (0, 10), (12, 28)), *used(2, (0, 5)), *used(3, (20, 24))]
    (piece,) = advised({"s_pod_interval": lived})
    assert (piece.current, piece.n) == ("state-a-2", 1)
    assert piece.effect is not None
    assert piece.effect.high == 3
    assert piece.patch == {"spec": {"state": {"retention": {"whenScaled": "Delete"}}}}
    # One ordinal came back after half a day: its state was of use, so that later claims are worth keeping.
    (kept,) = advised({"s_pod_interval": [*lived, *used(4, (0, 10), (10.5, 28))]})
    assert (kept.current, kept.patch) == ("state-a-2", None)
    assert [one.is_empty for one in advised({"s_pod_interval": used(0, (0, 28))})] == [True]


def on_nodes(**rates: float) -> list[dict[str, Any]]:
    """Volumes named after their nodes, with their rates."""
    row = {"scope": "volume", "subtopology": "0", "n_stints": 9}
    return [{**row, "volume": f"v-{node}", "node": node, "rate_p50": rate} for node, rate in rates.items()]


def test_a_node_is_named_where_all_volumes_on_it_are_slow() -> None:
    sick = {"a": rows_of({"g_restore_profile": on_nodes(n1=5e3, n2=4e4, n3=4e4)}, 28)}
    sick["b"] = rows_of({"g_restore_profile": on_nodes(n1=6e3, n2=5e4, n4=5e4)}, 28)
    other = {**sick, "c": rows_of({"g_restore_profile": on_nodes(n1=3e4, n2=3e4, n3=3e4)}, 28)}

    def knobs(apps: Mapping[str, AppRows]) -> dict[str, list[str]]:
        found = {title: advice(rows) for title, rows in apps.items()}
        profiles = {title: rows["g_restore_profile"] for title, rows in apps.items()}
        return {title: [one.knob for one in pieces] for title, pieces in with_nodes(found, profiles).items()}

    assert knobs(sick) == {"a": ["node n1"], "b": ["node n1"]}
    # A sound volume on the node acquits it, and one slow volume does not accuse it.
    assert knobs(other) == {"a": ["volume v-n1"], "b": ["volume v-n1"], "c": [""]}
    assert knobs({"a": sick["a"]}) == {"a": ["volume v-n1"]}


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


if __name__ == "__main__":
    sys.stdout.write(f"{found_in(range(SEEDS))}\n")
