"""Small histories drawn by hand, and what is true of every history."""

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from streamapp.analytics.bronze.ingest import Ingested
from streamapp.analytics.tables.derived_schemas import GOLD, SILVER
from tests.analytics.conftest import Whole
from tests.analytics.support.histories import TASKS
from tests.analytics.support.reading import plain, records

pytestmark = [pytest.mark.analytics, pytest.mark.timeout(900)]


def of(drawn: tuple[Path, Ingested], table: str, app: str) -> list[dict[str, Any]]:
    return [row for row in records(drawn[0], table) if (row["namespace"], row["app"]) == ("n", app)]


def test_a_torn_line_is_in_quarantine_with_its_number_and_what_is_new_is_kept(drawn: tuple[Path, Ingested]) -> None:
    root, done = drawn
    assert (done.bad, done.kept, done.doubled, done.files) == (1, done.rows - 1, 0, 3)
    bad = records(root, "b_quarantine")
    assert [(row["rule"], row["line"], row["raw"]) for row in bad] == [("unparsable", 4, '{"kind": "sample", torn')]
    assert bad[0]["file"].endswith("/record.jsonl.gz")
    extras = [dict(row["extra"]) for row in records(root, "b_decision") if row["extra"]]
    assert extras == [{"novel": '{"a":[1]}'}]


def test_four_of_six_tasks_on_one_of_three_processes(drawn: tuple[Path, Ingested]) -> None:
    (row,) = of(drawn, "g_skew_daily", "spread")
    assert (row["max_share"], row["imbalance"]) == pytest.approx((2 / 3, 2.0))
    assert (row["seen_s"], row["bad_s"]) == (3600, 3600)


def test_only_tasks_with_state_count_though_they_are_known_after_the_layout(drawn: tuple[Path, Ingested]) -> None:
    rows = of(drawn, "s_assignment_interval", "leads")
    assert sorted((row["ordinal"], row["active"], row["stateful_active"]) for row in rows) == [(0, 4, 2), (1, 4, 1)]
    (row,) = of(drawn, "g_skew_daily", "leads")
    assert row["max_share"] == pytest.approx(2 / 3)


def test_a_step_that_is_overtaken_counts_as_long_as_it_was_seen(drawn: tuple[Path, Ingested]) -> None:
    up, down = sorted(of(drawn, "s_scale_episode", "superseded"), key=lambda row: row["t_event"])
    assert (up["outcome"], up["observed_s"], up["convergence_s"]) == ("superseded", 60, None)
    assert dict(up["phases"]) == {
        "grant": 1, "schedule": 59, "start": 0, "join": 0, "restore": 0, "probe": 0, "settle": 0,
    }  # fmt: skip
    assert (down["outcome"], down["convergence_s"]) == ("converged", 140)
    assert dict(down["phases"]) == {"hold": 60, "drain": 30, "restore": 0, "probe": 0, "settle": 50}
    days = {row["direction"]: row for row in of(drawn, "g_convergence_daily", "superseded")}
    assert (days["up"]["n_censored"], days["up"]["km_p50"], days["up"]["slo_met"]) == (1, None, None)
    assert (days["down"]["n_censored"], days["down"]["km_p50"], days["down"]["slo_met"]) == (0, 140, True)
    (day,) = of(drawn, "g_autoscaler_daily", "superseded")
    assert (day["events"], day["reversals"], day["flap_pairs"], day["wasted_events"]) == (2, 1, 0, 1)


def test_what_an_autoscaler_could_not_do_and_what_lay_on_a_volume(drawn: tuple[Path, Ingested]) -> None:
    (day,) = of(drawn, "g_autoscaler_daily", "limited")
    assert (day["below_min_s"], day["cannot_act_s"], day["above_max_s"]) == (600, 300, 2700)
    (volume,) = of(drawn, "g_volume_daily", "limited")
    # What is told of a pod that is gone is no longer the case.
    assert (volume["volume"], volume["state_bytes"], volume["free_bytes"], volume["requested_bytes"]) == (
        *("v", 700, 250, 1000),
    )
    ends = [(row["exit_code"], row["end_reason"]) for row in of(drawn, "s_pod_interval", "limited")]
    assert sorted(ends, key=str) == [(137, "OOMKilled"), (137, "OOMKilled"), (None, None), (None, None)]


def test_a_hold_whose_copies_come_no_nearer_is_told_from_others(drawn: tuple[Path, Ingested]) -> None:
    stuck = {(row["reason"], row["task"]): row["stuck_s"] for row in of(drawn, "g_hold_blame", "held")}
    assert stuck == {
        ("LearnersCatchingUp", "0_0"): 5 + 300,
        ("LearnersCatchingUp", "0_1"): 5,
        ("Unrecorded", None): 0,
        ("ReadingsPending", None): 0,
    }
    assert {row["stuck_s"] for row in of(drawn, "g_hold_blame", "skewed")} == {None}, "an older record does not tell"


def test_copies_that_fall_back_are_lost_or_take_over(drawn: tuple[Path, Ingested]) -> None:
    stints = sorted(of(drawn, "s_learner_stint", "learning"), key=lambda row: (row["ordinal"], row["t_start"]))
    told = [(row["ordinal"], row["end_reason"], row["samples"], row["restored"], row["gross_rate"]) for row in stints]
    assert told == [
        (0, "promoted", 2, 400, None),
        (1, "caught_up", 3, 600, 30.0),
        (1, "caught_up", 2, 200, None),
        (2, "lost", 5, 0, 0.0),
        (3, "dropped", 3, 600, 30.0),
        (3, "caught_up", 3, 800, 40.0),
    ]
    (gap,) = of(drawn, "s_downtime", "learning")
    assert (gap["task"], gap["source"], gap["downtime_s"], gap["err_s"]) == ("0_0", "sample", 20, 10)


def test_a_leader_that_takes_over_makes_no_step_breaks_none_and_rebalances_nothing(
    drawn: tuple[Path, Ingested],
) -> None:
    (row,) = of(drawn, "s_scale_episode", "handed-over")
    assert (row["from_replicas"], row["to_replicas"], row["outcome"], row["convergence_s"]) == (2, 3, "converged", 40)
    assert (row["rebalances"], row["moved_tasks"]) == (1, 3)
    (day,) = of(drawn, "g_autoscaler_daily", "handed-over")
    assert day["events"] == 1
    assert [rebalance["epoch"] for rebalance in of(drawn, "s_rebalance", "handed-over")] == [3]


def test_the_gap_of_a_step_is_that_of_its_worst_task_as_a_range(drawn: tuple[Path, Ingested]) -> None:
    (row,) = of(drawn, "s_scale_episode", "handed-over")
    # At most what a task took of which only a part may lie within, at least what one took that lies within wholly.
    assert (row["worst_gap_s"], row["worst_gap_err_s"]) == (3, 2)
    gaps = sorted(of(drawn, "s_downtime", "handed-over"), key=lambda gap: gap["t_resume"])
    told = [(gap["source"], gap["task"], gap["downtime_s"], gap["err_s"]) for gap in gaps]
    assert told == [("gap", "0_4", 2, 1.5), ("gap", "0_5", 1.5, 0.5), ("gap", "0_3", 3, 0.5), ("gap", "0_5", 5, 5)]


def test_what_members_tell_at_joins_alone_has_no_grade_and_no_rate(drawn: tuple[Path, Ingested]) -> None:
    (stint,) = of(drawn, "s_learner_stint", "joins")
    assert (stint["end_reason"], stint["samples"], stint["restored"]) == ("caught_up", 3, 700)
    assert (stint["grade"], stint["gross_rate"], stint["net_rate"]) == (None, None, None)
    assert of(drawn, "g_restore_profile", "joins") == []


def test_grades_count_the_samples_that_were_to_be_expected(drawn: tuple[Path, Ingested]) -> None:
    grades = {(row["ordinal"], row["samples"]): row["grade"] for row in of(drawn, "s_learner_stint", "learning")}
    assert set(grades.values()) == {"A"}


def test_a_changed_process_id_on_one_volume_and_a_member_without_a_pod(drawn: tuple[Path, Ingested]) -> None:
    (row,) = of(drawn, "g_churn_daily", "identity")
    assert (row["pid_changes"], row["ghost_members"], row["rebalances"]) == (1, 1, 0)


def test_blockers_share_a_hold_and_what_nobody_looked_at_is_unrecorded(drawn: tuple[Path, Ingested]) -> None:
    rows = of(drawn, "s_hold_interval", "held")
    assert {(row["reason"], row["task"], row["share_s"], row["critical"]) for row in rows} == {
        ("LearnersCatchingUp", "0_0", 305, True),
        ("LearnersCatchingUp", "0_1", 5, False),
        ("Unrecorded", None, 90, False),
        ("ReadingsPending", None, 10, False),
    }
    assert {row["hold_s"] for row in rows} == {410}


def test_phases_sum_to_what_a_step_took(whole: Whole) -> None:
    rows = records(whole.root, "s_scale_episode")
    assert {row["outcome"] for row in rows} == {"converged", "cancelled", "superseded", "open"}
    for row in rows:
        assert math.fsum(seconds for _, seconds in row["phases"]) == pytest.approx(row["observed_s"], abs=1e-6)
        assert min(seconds for _, seconds in row["phases"]) >= 0


def test_shares_sum_to_the_hold(whole: Whole) -> None:
    shares: dict[tuple[str, ...], list[float]] = defaultdict(list)
    lengths = {}
    for row in records(whole.root, "s_hold_interval"):
        which = (row["uid"], row["hold_id"], row["dt"])
        shares[which].append(row["share_s"])
        lengths[which] = row["hold_s"]
    assert len(lengths) > 10
    assert {which: math.fsum(of_one) for which, of_one in shares.items()} == pytest.approx(lengths)


def test_the_best_spread_that_is_possible_is_not_called_bad(drawn: tuple[Path, Ingested]) -> None:
    (row,) = of(drawn, "g_skew_daily", "optimum")
    assert (row["imbalance"], row["bad_s"]) == (1.0, 0)


def test_outages_outside_a_step_are_counted_by_what_stopped_the_task(drawn: tuple[Path, Ingested]) -> None:
    (row,) = of(drawn, "g_downtime_daily", "crashed")
    assert dict(row["by_cause"]) == {"crash": 40, "eviction": 20, "rollout": 30, "unknown": 850}
    assert (row["n"], row["at_least_s"], row["at_most_s"]) == (4, 20 + 30 + 0 + 840, 940)
    assert (row["worst_task"], row["worst_s"], row["open"]) == ("0_3", 850, 0)
    assert (row["tasks"], row["task_s"]) == (6, 6 * 3601)


def test_an_outage_that_goes_on_is_counted_as_open(drawn: tuple[Path, Ingested]) -> None:
    (row,) = of(drawn, "g_downtime_daily", "still-down")
    assert (row["n"], row["at_most_s"], row["at_least_s"], row["open"]) == (1, 3390, 3380, 1)


def test_the_gaps_of_a_step_are_downtime_of_scaling(drawn: tuple[Path, Ingested]) -> None:
    (row,) = of(drawn, "g_downtime_daily", "handed-over")
    assert dict(row["by_cause"]) == {"scale": 2 + 1.5 + 3 + 5}


def test_a_hold_by_a_person_is_a_hold(drawn: tuple[Path, Ingested]) -> None:
    (row,) = of(drawn, "g_hold_blame", "by-a-person")
    assert (row["reason"], row["task"], row["blame_s"], row["holds"]) == ("HeldByUser", None, 1200, 1)


def test_a_task_that_blocked_alone_is_told_from_those_that_only_waited_too(drawn: tuple[Path, Ingested]) -> None:
    rows = {
        row["task"]: (row["share_s"], row["sole_s"], row["critical"]) for row in of(drawn, "s_hold_interval", "alone")
    }
    assert rows == {"0_9": (10, 0, False), "0_1": (40, 30, True), None: (80, 0, False)}


def test_a_step_after_a_lost_line_counts_and_says_that_a_line_is_lost(drawn: tuple[Path, Ingested]) -> None:
    (row,) = of(drawn, "s_scale_episode", "lost-a-line")
    assert (row["from_replicas"], row["to_replicas"], row["outcome"], row["lost_lines"]) == (3, 2, "converged", 1)


def test_settings_that_a_new_leader_does_not_know_yet_are_no_change(drawn: tuple[Path, Ingested]) -> None:
    (row,) = of(drawn, "s_config", "same")
    assert (row["tasks"], row["stateful_tasks"], row["learner_source"], row["valid_to"]) == (6, TASKS, "OnDemand", None)


def test_no_state_goes_on_while_nobody_looked(drawn: tuple[Path, Ingested]) -> None:
    (day,) = of(drawn, "s_seen", "unwatched")
    assert (day["watched_s"], len(day["spans"])) == (600 + 1200, 2)
    held = of(drawn, "g_hold_blame", "unwatched")
    assert sum(row["blame_s"] for row in held) == 599
    (skew,) = of(drawn, "g_skew_daily", "unwatched")
    assert (skew["seen_s"], skew["imbalance"]) == (1799, pytest.approx((599 * 4 / 3 + 1200) / 1799))
    (lost,) = of(drawn, "g_downtime_daily", "unwatched")
    assert lost["task_s"] == 6 * 1800


def test_a_leader_whose_clock_is_behind_ends_the_hold_of_the_former_one(drawn: tuple[Path, Ingested]) -> None:
    rows = of(drawn, "g_hold_blame", "skewed")
    assert sum(row["blame_s"] for row in rows) == pytest.approx(10, abs=1e-5)
    states = sorted(of(drawn, "s_decision_interval", "skewed"), key=lambda row: row["t_start"])
    assert [row["verdict"] for row in states] == ["Hold", "Hold", "Steady"]


def test_a_gap_that_spans_a_change_of_leader_counts_from_the_former_ones_last_look(
    drawn: tuple[Path, Ingested],
) -> None:
    gaps = {row["task"]: (row["downtime_s"], row["err_s"]) for row in of(drawn, "s_downtime", "node-died")}
    # At most since the former leader's last look, at least since the first look of the next. It saw `0_1` run itself.
    assert gaps == {"0_0": (88, 30), "0_2": (25, 25)}


TIMES = {
    "t_start",
    "t_end",
    "t_event",
    "t_stop",
    "t_resume",
    "t_caught_up",
    "valid_from",
    "valid_to",
    "updated",
    "dt",
    "ts",
}
TIMES |= {"t_first", "t_last", "spans"}
NAMES = {"namespace", "uid", "event_id", "hold_id", "task", "process_id", "critical_task", "worst_task", "ordinal"}
NAMES |= {"holders", "blocking", "stateful_tasks"}
SUMMED = ("g_downtime_daily", "g_hold_blame", "g_autoscaler_daily", "g_churn_daily")
"""Tables by day whose figures are sums: an hour over midnight is shared out to two days."""


def figures(root: Path, table: str, namespace: str) -> list[str]:
    """The rows of the histories as told in a namespace, without times and names."""
    found = []
    for row in records(root, table):
        if row["namespace"] == namespace:
            left = {name: plain(value) for name, value in row.items() if name not in TIMES | NAMES}
            found.append(str(sorted((name, value) for name, value in left.items() if value is not None)))
    return sorted(found)


@pytest.mark.parametrize("table", [*SILVER, *GOLD])
def test_names_of_tasks_and_processes_change_no_figure(drawn: tuple[Path, Ingested], table: str) -> None:
    assert figures(drawn[0], table, "renamed") == figures(drawn[0], table, "n")


@pytest.mark.parametrize("table", ["s_scale_episode", "s_learner_stint", "s_rebalance", "g_restore_profile"])
def test_the_time_of_day_changes_no_figure(drawn: tuple[Path, Ingested], table: str) -> None:
    assert figures(drawn[0], table, "shifted") == figures(drawn[0], table, "n")


@pytest.mark.parametrize("table", SUMMED)
def test_midnight_shares_out_what_it_cuts(drawn: tuple[Path, Ingested], table: str) -> None:
    def sums(namespace: str) -> dict[tuple[str, str], float]:
        found: dict[tuple[str, str], float] = defaultdict(float)
        for row in records(drawn[0], table):
            if row["namespace"] == namespace:
                for name in ("blame_s", "sole_s", "at_least_s", "at_most_s", "n", "replica_h", "rebalances", "events"):
                    found[row["app"], name] += row.get(name) or 0
        return found

    assert sums("shifted") == pytest.approx(sums("n"))
