"""`history` with an operator that keeps a flight record: its files, its own answer, behind the pod proxy."""

import os
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streamapp.controller.record import reader as controller_history
from streamapp.controller.record.files import OpenFile
from streamapp.core.reasons import Reason
from streamapp.flightrecord import schema as flight
from tests.builders import NOW, ago
from tests.cli.cluster import Cluster
from tests.cli.conftest import Run
from tests.cli.model.test_history import an_event, entries, tell
from tests.cli.operator_there import SYSTEM, OperatorThere
from tests.cli.showing import Json, a_resource, a_step, zulu
from tests.kube.api_server import ApiServer
from tests.statuses import held_status
from tests.streamapps import UID

PATH = "/v1/apps/demo/wordcount/history"
Make = Callable[..., flight.Record]


def line(make: Make, seconds_ago: float, seq: int, **fields: Any) -> flight.Record:
    head = {"cluster": "", "namespace": "demo", "app": "wordcount", "uid": UID, "recorder": "pod_1"}
    return make(**{**head, "ts": ago(seconds_ago), "seq": seq, **fields})


def decided(seconds_ago: float, seq: int, reason: str, verdict: str = "Hold", **fields: Any) -> flight.Record:
    counts = {"desired": 2, "granted": 3, "actual": 3, "ready": 3}
    return line(flight.DecisionLine, seconds_ago, seq, **{"verdict": verdict, "reason": reason, **counts, **fields})


def wished(seconds_ago: float, seq: int, old: int | None, new: int, **fields: Any) -> flight.Record:
    by: Json = {"actor": flight.Actor.HPA, "manager": "kube-controller-manager", "generation": 2}
    return line(flight.ScaleLine, seconds_ago, seq, **{"old_replicas": old, "new_replicas": new, **by, **fields})


HELD: Json = {"hold_id": "h-1", "hold_since": ago(60), "target": 2}
GRANTED: Json = {"from_replicas": 4, "to_replicas": 3}
CLOSED: Json = {**GRANTED, "hold_id": "h-0", "granted_at": ago(599.6), "took_seconds": 12.3, "held_seconds": 250}
GAP: Json = {"worst_gap_seconds": 0.64, "gap_error_seconds": 0.5}
STORY = (
    wished(900, 0, None, 4, actor=flight.Actor.UNKNOWN, manager=""),
    wished(800, 1, 4, 3),
    line(flight.StepLine, 600, 2, step="CloseBudget", outcome=flight.StepOutcome.DONE, reason="Covered"),
    line(flight.StepLine, 599, 3, step="GrantReplicas", outcome=flight.StepOutcome.DONE, reason="Covered", **GRANTED),
    line(flight.StepClosedLine, 587, 4, **CLOSED, **GAP),
    wished(61, 5, 3, 2),
    decided(60, 6, "LearnersCatchingUp", detail="2 tasks wait", **HELD),
    decided(50, 7, "LearnersCatchingUp", detail="1 task waits", ready=2, **HELD),
)


@pytest.fixture
def there(cluster: Cluster, tmp_path: Path) -> OperatorThere:
    """An operator with a record, and one StreamApp whose scale-down is held."""
    resource = a_resource(held_status(), {"spec.replicas": 2})
    resource["status"]["lastSteps"] = [a_step(heldDuration="4m10s", downtimeMax="640ms", downtimeUncertainty="500ms")]
    resource["status"]["scaleDown"] |= {"holdId": "h-1", "since": zulu(60)}
    cluster.put(resource)
    operator = OperatorThere(cluster, record=tmp_path / "record")
    operator.install(lease="operator-a_x7k2")
    operator.serve()
    return operator


def keep(there: OperatorThere, *records: flight.Record) -> None:
    """Write these, as the operator does."""
    assert there.record is not None
    file = OpenFile(there.record, "pod_1", 0, NOW)
    file.write(b"".join(map(flight.to_line, records)))
    file.finish()
    os.utime(file.path, (NOW.timestamp(), NOW.timestamp()))


def shown(run: Run, *arguments: str) -> list[tuple[str, str]]:
    return [(one["what"], one["by"]) for one in entries(run, *arguments)]


def test_the_record_alone_is_shown_in_order(there: OperatorThere, cluster: Cluster, run: Run) -> None:
    keep(there, *STORY)
    tell(cluster, an_event("gitops", 60, {"reportingController": "gitops"}))
    assert shown(run) == [
        ("Replicas", ""),
        ("Replicas", "kube-controller-manager (HPA)"),
        ("Step", "operator"),
        ("Replicas", "kube-controller-manager (HPA)"),
        ("Hold", "operator"),
        ("HoldBegan", "operator"),
        ("LearnersCatchingUp", "operator"),
    ]
    document = run("history", "wordcount", "-o", "json").document
    assert document["source"] == "record"
    assert [one["message"] for one in document["entries"]] == [
        "Desired replicas are 4 when the record begins.",
        "Desired replicas changed from 4 to 3.",
        "4 to 3: held for 4m10s, took 12s, downtime 140ms to 640ms, hold h-0",
        "Desired replicas changed from 3 to 2.",
        "3 to 2: held for 1m so far, hold h-1: LearnersCatchingUp 1m",
        "The scale-down 3 to 2 began, hold h-1.",
        f"{Reason.LearnersCatchingUp.note} 2 tasks wait. Desired 2, current 3 (3 running, 3 ready).",
    ]
    assert run("history", "wordcount").out.splitlines()[0] == "demo/wordcount  from the flight record"
    assert there.forwarded[0] == f"operator-a:8081{PATH}"


def test_how_far_estimates_were_off_is_said_last(there: OperatorThere, run: Run) -> None:
    held: Json = {"hold_id": "h-1", "target": 2}
    keep(
        there,
        decided(100, 0, "LearnersCatchingUp", **held, eta_seconds=40.0),
        decided(90, 1, "LearnersCatchingUp", **held, eta_seconds=35.0),
        decided(80, 2, "LearnersCatchingUp", **held),
        decided(70, 3, "LearnersCatchingUp", **held, eta_seconds=30.0),
        decided(50, 4, "Covered", "Step", **held),
    )
    assert run("history", "wordcount", "-o", "json").document["estimates"] == {
        "p10ErrorSeconds": -10.0,
        "p50ErrorSeconds": -10.0,
        "p90ErrorSeconds": 10.0,
        "estimates": 2,
        "holds": 1,
    }
    words = " ".join(run("history", "wordcount").out.split())
    assert words.endswith("2 estimates in 1 hold: pods went 10s early (P10), 10s early (P50), 10s late (P90).")


def test_a_person_sees_a_hold_as_one_entry_and_its_details_with_all(there: OperatorThere, run: Run) -> None:
    held: Json = {"hold_id": "h-2", "hold_since": ago(500), "target": 2}
    keep(
        there,
        *STORY[:5],
        decided(500, 5, "LearnersCatchingUp", **held),
        decided(400, 6, "FactsStale", **held),
        decided(390, 7, "LearnersCatchingUp", **held),
        decided(100, 8, "Steady", "Steady", desired=3),
        decided(90, 9, "TasksNotRunning", "CloseStep", desired=3),
        line(flight.StepLine, 80, 10, step="TriggerRebalance", outcome=flight.StepOutcome.DONE, reason="Covered"),
        line(flight.StepLine, 70, 11, step="TriggerRebalance", outcome=flight.StepOutcome.FAILED, reason="Covered"),
        decided(60, 12, "HeldByUser", detail="disks", desired=3),
    )
    every = entries(run)
    unfolded = [(one["what"], one["message"]) for one in every if not one["folded"]]
    assert [what for what, _ in unfolded] == ["Replicas", "Replicas", "Step", "Hold", "TriggerRebalance", "HeldByUser"]
    assert unfolded[3][1] == "3 to 2: held for 6m40s, hold h-2: LearnersCatchingUp 6m30s, FactsStale 10s"
    folded = [one["what"] for one in every if one["folded"]]
    assert folded[:3] == ["HoldBegan", "LearnersCatchingUp", "FactsStale"]
    assert set(folded[3:]) == {
        "LearnersCatchingUp",
        "Steady",
        "TasksNotRunning",
        "TriggerRebalance",
    }
    ran, all_of_it = run("history", "wordcount"), run("history", "wordcount", "--all")
    assert "TasksNotRunning" not in ran.out
    assert ran.out.splitlines()[-1] == f"{len(folded)} more entries with --all."
    assert "TasksNotRunning" in all_of_it.out
    assert "--all" not in all_of_it.out


def test_a_hold_that_goes_on_is_told_however_little_time_is_asked_for(there: OperatorThere, run: Run) -> None:
    keep(there, *STORY)
    (hold,) = [one for one in entries(run, "--since", "55s") if not one["folded"]]
    assert hold["message"] == "3 to 2: held for 1m so far, hold h-1: LearnersCatchingUp 50s"


def test_each_process_that_went_on_with_the_record_is_told_once(there: OperatorThere, run: Run) -> None:
    other = {"recorder": "operator-b_x7k2_1a2b", "verdict": "Steady"}
    keep(
        there, *STORY[:2], decided(700, 0, "Steady", **other), wished(690, 3, 3, 4), decided(680, 1, "Steady", **other)
    )
    (leader,) = [one for one in entries(run) if one["what"] == "Leader"]
    assert (leader["at"], leader["folded"]) == (f"{ago(700).isoformat()}", False)
    assert leader["message"] == "The operator's pod operator-b became leader."


def test_a_record_that_began_later_than_what_is_asked_for_says_so(there: OperatorThere, run: Run) -> None:
    keep(there, *STORY)
    began = "The record of the leading pod begins at 2026-11-21 11:45:00 UTC."
    for asked in ((), ("--since", "20m")):
        ran = run("history", "wordcount", *asked)
        assert (ran.code, ran.err) == (0, f"{began}\n")
    ran = run("history", "wordcount", "--since", "14m")
    assert (ran.code, ran.err) == (0, "")


def test_a_step_is_told_while_it_is_open_and_as_a_whole_when_it_is_closed(there: OperatorThere, run: Run) -> None:
    grown = {"reason": "Growing", "from_replicas": 3, "to_replicas": 4}
    keep(
        there,
        line(
            flight.StepLine,
            601,
            1,
            step="GrantReplicas",
            outcome=flight.StepOutcome.FAILED,
            reason="Covered",
            **GRANTED,
        ),
        *STORY[3:5],
        line(flight.StepLine, 400, 5, step="GrantReplicas", outcome=flight.StepOutcome.DONE, **grown),
        line(
            flight.StepLine, 100, 6, step="GrantReplicas", outcome=flight.StepOutcome.DONE, reason="Covered", **GRANTED
        ),
    )
    assert [(one["what"], one["message"].partition(":")[0], one["warning"]) for one in entries(run)] == [
        ("GrantReplicas", "4 to 3", True),
        ("Step", "4 to 3", False),
        ("GrantReplicas", "3 to 4", False),
        ("GrantReplicas", "4 to 3", False),
    ]


def test_since_is_handed_on(there: OperatorThere, run: Run) -> None:
    keep(there, *STORY)
    assert [what for what, _ in shown(run, "--since", "5m")] == [
        "Replicas",
        "Hold",
        "HoldBegan",
        "LearnersCatchingUp",
    ]
    shown(run)
    assert there.since == [f"{NOW - timedelta(minutes=5):%Y-%m-%dT%H:%M:%S.%fZ}", ""]


def test_a_new_recorder_repeats_nothing_and_the_wish_that_it_missed_is_told(there: OperatorThere, run: Run) -> None:
    again = {"recorder": "pod_2", "actor": flight.Actor.UNKNOWN, "manager": ""}
    keep(there, *STORY[:2], wished(700, 0, None, 3, **again), wished(650, 0, None, 5, **again))
    wishes = [one["message"] for one in entries(run) if one["what"] == "Replicas"]
    assert wishes[1:] == ["Desired replicas changed from 4 to 3.", "Desired replicas changed from 3 to 5."]


def test_an_override_has_its_reason(there: OperatorThere, run: Run) -> None:
    closed = line(flight.StepClosedLine, 587, 4, **CLOSED, forced_by="Override")
    forced: Json = {"detail": "the disk is full", "hold_id": "h-0", "target": 3}
    keep(there, decided(600, 3, "OverriddenByUser", **forced), closed)
    (step,) = [one for one in entries(run) if one["what"] == "Step"]
    assert step["warning"] is True
    assert step["message"].endswith("downtime unknown, hold h-0, overridden by Override: the disk is full")


def test_an_override_without_its_decision_has_no_reason(there: OperatorThere, run: Run) -> None:
    keep(there, line(flight.StepClosedLine, 587, 4, **CLOSED, forced_by="Override"))
    (step,) = [one for one in entries(run) if one["what"] == "Step"]
    assert step["message"].endswith("downtime unknown, hold h-0, overridden by Override")


def test_what_failed_and_what_is_stalled_are_warnings(there: OperatorThere, run: Run) -> None:
    failed = {"outcome": flight.StepOutcome.FAILED, "reason": "Covered"}
    keep(
        there,
        line(flight.StepLine, 30, 0, step="CloseBudget", **failed),
        line(flight.StepLine, 25, 1, step="RestartPod", **failed, ordinal=2),
        decided(20, 2, "NoProgress", "Stalled"),
        decided(15, 4, "ForeignStatefulSet", "Stalled"),
        decided(10, 3, "OfTomorrow", detail="the moon is full"),
    )
    found = {one["what"]: (one["warning"], one["message"]) for one in entries(run)}
    assert found["CloseBudget"][0] is True
    assert found["CloseBudget"][1].startswith(f"failed, the operator tries again: {Reason.Covered.note}")
    assert found["RestartPod"][1].startswith("pod 2: failed, the operator tries again: ")
    assert found["NoProgress"][0] is True
    assert found["NoProgress"][1].endswith("Desired 2, current 3 (3 running, 3 ready).")
    assert found["ForeignStatefulSet"][0] is True
    assert Reason.ForeignStatefulSet.next_step in found["ForeignStatefulSet"][1]
    assert found["OfTomorrow"] == (
        False,
        "the moon is full. Desired 2, current 3 (3 running, 3 ready).",
    )


def test_lines_of_a_streamapp_that_had_the_name_before_are_left_out(there: OperatorThere, run: Run) -> None:
    keep(there, wished(60, 0, 7, 8, uid="another"))
    document = run("history", "wordcount", "-o", "json").document
    assert (document["source"], document["entries"]) == ("record", [])


def test_text_in_the_record_cannot_steer_a_terminal(there: OperatorThere, run: Run) -> None:
    keep(
        there,
        decided(60, 0, "a\x1b[2J", detail="b\x1b"),
        wished(50, 1, 3, 2, manager="c\x1b"),
        decided(40, 2, "LearnersCatchingUp", detail="d\x1b"),
    )
    out = run("history", "wordcount").out
    assert "\x1b" not in out
    assert "[2J" in out
    assert "Desired replicas changed from 3 to 2." in out


def test_a_record_that_is_too_long_says_so(there: OperatorThere, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_history, "MOST_LINES", 2)
    keep(there, *STORY)
    ran = run("history", "wordcount")
    assert ran.code == 0
    assert ran.err == ("The flight record has more entries than the answer: shorten the time with --since.\n")


def no_operator(there: OperatorThere) -> None:
    for pod in ("operator-a", "operator-b"):
        there.remove("pods", SYSTEM, pod)
    there.remove("leases", SYSTEM, "streamapp-operator")


def no_right(there: OperatorThere) -> None:
    there.cluster.do(partial(_refuse_port_forwards))


def _refuse_port_forwards(server: ApiServer) -> None:
    refusal = (403, 'User "me" cannot create pods/portforward')
    server.refuse = lambda request: refusal if request.path.endswith("/portforward") else None


def no_record(there: OperatorThere) -> None:
    there.record = None


def busy(there: OperatorThere) -> None:
    there.answers[PATH] = (503, b"somebody else is reading the flight record, or its disk does not answer: ask again")


def newer(there: OperatorThere) -> None:
    there.answers[PATH] = (200, b'{"v":2,"isWhole":true,"lines":[]}')


def older(there: OperatorThere) -> None:
    there.answers[PATH] = (404, b"404: Not Found")


UNANSWERED: dict[Callable[[OperatorThere], None], tuple[str, str]] = {
    no_operator: ("there is no pod with the label", "or STREAMAPP_OPERATOR_NAMESPACE"),
    no_right: (
        "cannot create pods/portforward",
        f"ask for a Role in namespace {SYSTEM} with get and create pods/portforward",
    ),
    no_record: (
        "no flight record is kept: STREAMAPP_RECORD_FOLDER names no folder",
        "set the chart's value record.enabled",
    ),
    busy: ("somebody else is reading", "upgrade the operator"),
    newer: ("is not readable: v: ", "use the same version of the operator and the command line"),
    older: ("404: Not Found", "or upgrade the operator"),
}


@pytest.mark.parametrize("spoil", UNANSWERED, ids=lambda spoil: spoil.__name__)
def test_without_an_answer_of_the_operator_the_source_is_events_and_the_cause_is_reported(
    there: OperatorThere, cluster: Cluster, run: Run, spoil: Callable[[OperatorThere], None]
) -> None:
    keep(there, *STORY)
    tell(cluster, an_event("it", 60))
    spoil(there)
    document = run("history", "wordcount", "-o", "json").document
    assert (document["source"], [one["message"] for one in document["entries"]]) == ("events", ["The note of it."])
    (sentence,) = document["notes"]
    cause, step = UNANSWERED[spoil]
    assert sentence.startswith("No flight record: ")
    assert cause in sentence
    assert sentence.endswith(f"{step}. Events go back an hour by default.")
    ran = run("history", "wordcount")
    assert (ran.code, ran.err) == (0, f"{sentence}\n")


def test_an_empty_record_is_no_source(there: OperatorThere, run: Run) -> None:
    assert there.record is not None
    document = run("history", "wordcount", "-o", "json").document
    assert (document["source"], document["notes"]) == (
        "events",
        ["No flight record: the flight record is empty. Events go back an hour by default."],
    )


def test_another_operator_is_asked_where_it_is_named(there: OperatorThere, run: Run) -> None:
    keep(there, *STORY)
    no_operator(there)
    there.install("operator-a", namespace="elsewhere")
    document = run("history", "wordcount", "-o", "json", "--operator-namespace", "elsewhere").document
    assert document["source"] == "record"


def forecast(make: Make, seconds_ago: float, seq: int, **fields: Any) -> flight.Record:
    change: Json = {"opened_at": ago(900), "from_replicas": 4, "to_replicas": 3, "moves": 2}
    times: Json = {"p10_seconds": 22.0, "p50_seconds": 29.0, "p90_seconds": 38.0}
    return line(make, seconds_ago, seq, **{**change, **times, **fields})


MADE: Json = {"assignor": "learner", "learners": 2, "rebalances": 4, "worst_share": 2, "cold": 0}
SEEN: Json = {"result": flight.ForecastResult.WITHIN, "seen_moves": 2, "wrong_moves": 0, "seen_seconds": 31.0}


@pytest.mark.parametrize(
    ("closed", "message", "is_warning"),
    [
        (None, "4 to 3: predicted 22s to 38s and 2 moves", False),
        ({}, "4 to 3: took 31s, all tasks as predicted, predicted 22s to 38s and 2 moves", False),
        (
            {"result": flight.ForecastResult.OUTSIDE, "seen_seconds": 90.0},
            "4 to 3: took 1m30s, all tasks as predicted, predicted 22s to 38s and 2 moves",
            True,
        ),
        (
            {"wrong_moves": 1},
            "4 to 3: took 31s, 1 task not where predicted, predicted 22s to 38s and 2 moves",
            True,
        ),
        (
            {"p10_seconds": None, "p90_seconds": None, "result": flight.ForecastResult.NO_TIME},
            "4 to 3: took 31s, all tasks as predicted, predicted no time and 2 moves",
            False,
        ),
        (
            {"fewest_moves": 2, "most_moves": 4, "uncertain_tasks": 3},
            "4 to 3: took 31s, all tasks as predicted (3 on one of several pods), "
            "predicted 22s to 38s and 2 to 4 moves",
            False,
        ),
        (
            {"fewest_moves": 2, "most_moves": 2, "uncertain_tasks": 0},
            "4 to 3: took 31s, all tasks as predicted, predicted 22s to 38s and 2 moves",
            False,
        ),
        (
            {"result": flight.ForecastResult.SUPERSEDED, "seen_seconds": None, "wrong_moves": None},
            "4 to 3: another change came first, predicted 22s to 38s and 2 moves",
            False,
        ),
    ],
)
def test_a_forecast_stands_beside_what_was_seen(
    there: OperatorThere, run: Run, closed: Json | None, message: str, *, is_warning: bool
) -> None:
    lines = [forecast(flight.ForecastLine, 900, 1, **MADE)]
    if closed is not None:
        lines.append(forecast(flight.ForecastClosedLine, 800, 2, **{**SEEN, **closed}))
    keep(there, *lines)
    document = run("history", "wordcount", "-o", "json").document
    (entry,) = [one for one in document["entries"] if one["what"] == "Forecast"]
    assert (entry["message"], entry["warning"]) == (message, is_warning)
