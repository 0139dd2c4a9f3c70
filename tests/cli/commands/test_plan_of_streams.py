"""`kubectl streamapp plan` for a group of the streams protocol, whose brokers assign."""

from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.doctor.subject import Subject
from streamapp.core.facts.agent_reports import AsideKind, AssignorInactive, HeartbeatCap
from streamapp.core.facts.group import Member, StandbySetting
from streamapp.core.facts.policy import LearnerSource
from tests.cli.cluster import Cluster
from tests.cli.commands.test_plan import SETTLED, rows
from tests.cli.commands.test_status import an_error
from tests.cli.conftest import Run
from tests.cli.operator_there import OperatorThere, that_tells_of
from tests.cli.showing import Json, a_resource
from tests.core.doctor.subjects import a_patient, of_streams_protocol, with_agents
from tests.support import example

ASIDE = AssignorInactive(AsideKind.STREAMS_PROTOCOL, "")
WORDS = {"is_ours": False, "aside": ASIDE, "heartbeat_cap": HeartbeatCap()}
AGENT: Json = {"spec.agent": {"enabled": True}}
SPREAD = (
    example.member(0, active=(0, 1), standby=(4,)),
    example.member(1, active=(2, 3), standby=(5,)),
    example.member(2, active=(4, 5), standby=(0, 1, 2, 3)),
)


def a_group(
    members: tuple[Member, ...] = SPREAD,
    standbys: int = 1,
    *,
    source: LearnerSource = LearnerSource.STANDBYS,
    **streams: Any,
) -> Subject:
    subject = with_agents(
        members, words={**WORDS, "state_bytes": 1_000, "free_bytes": 1_000_000}, policy={"source": source}
    )
    return of_streams_protocol(subject, standbys=StandbySetting(standbys, is_set=True), **streams)


def an_app(source: str = "Standbys", changes: Json | None = None) -> Json:
    status = SETTLED | {"groupProtocol": "streams", "learnerSource": source}
    return a_resource(status, {"spec.replicas": 3, **AGENT, **(changes or {})})


@pytest.fixture
def there(cluster: Cluster) -> OperatorThere:
    """An operator, and one StreamApp of three pods, six tasks with a standby each where the brokers will want it."""
    cluster.put(an_app())
    return that_tells_of(cluster, a_group())


@pytest.mark.usefixtures("there")
def test_a_scale_down_is_what_the_brokers_make_of_it(run: Run) -> None:
    ran = run("plan", "wordcount", "--to", "2")
    assert (ran.code, ran.err) == (0, "")
    assert rows(ran.out) == ["2 sticky * 2 1 36s to 56s 300ms to 1.8s 3 of 6 0"]
    assert "2 tasks will move. 0 learners and 0 cold tasks read 0 records (0 B)." in ran.out
    assert "brokers 4.2, assignor sticky" in ran.out
    assert "agents shorten heartbeats to 300 ms while tasks move" in ran.out
    assert not any(word in ran.out for word in ("max.warmup", "probing", "holds this scale-down", "one of several"))


@pytest.mark.usefixtures("there")
def test_programs_get_the_ways_beside_the_moves(run: Run) -> None:
    document = run("plan", "wordcount", "--to", "2", "-o", "json").document
    (only,) = document["outcomes"]
    assert (only["assignor"], only["rebalances"]) == ("sticky", 1)
    assert only["moved"] == [{"task": "0_4", "from": 2, "to": 0}, {"task": "0_5", "from": 2, "to": 1}]
    assert only["ways"] == {
        "played": 24,
        "moves": {"fewest": 2, "most": 2},
        "cold": {"fewest": 0, "most": 0},
        "worstShare": {"fewest": 3, "most": 3},
        "uncertain": [],
        "standbys": 1,
        "standbyRaises": 0,
    }
    assert [one["cause"] for one in document["rounds"]] == ["members joined or left"]


def test_a_task_that_would_go_cold_holds_the_scale_down(there: OperatorThere, run: Run) -> None:
    there.tell_of(a_group(example.members(3)))
    ran = run("plan", "wordcount", "--to", "2")
    assert rows(ran.out)[0].endswith("3 of 6 1")
    assert (
        "The operator holds this scale-down (WouldMoveCold): 1 task would go to pods without a caught-up copy. "
        "Try `--standbys 2`, or another number of replicas." in ran.out
    )
    again = run("plan", "wordcount", "--to", "2", "--standbys", "2")
    assert rows(again.out)[0].endswith("3 of 6 0")
    assert "streams.num.standby.replicas 2, and these standbys have caught up" in again.out


def test_on_demand_the_standbys_are_raised_for_it(cluster: Cluster, there: OperatorThere, run: Run) -> None:
    cluster.put(an_app("OnDemand"))
    there.tell_of(a_group(example.members(3, standbys=False), 0, source=LearnerSource.ON_DEMAND))
    document = run("plan", "wordcount", "--to", "2", "-o", "json").document
    (only,) = document["outcomes"]
    assert (only["cold"], only["ways"]["cold"]["most"], only["ways"]["standbyRaises"] > 0) == (0, 0, True)
    raised = only["ways"]["standbys"]
    assert document["warnings"] == [
        f"The operator raises `streams.num.standby.replicas` of the group to {raised} for this, and then sets it to 0 "
        "again."
    ]
    assert document["rounds"][0]["cause"] == "the operator changed the standbys of the group"


def test_what_nobody_can_know_is_a_range_and_a_sentence(there: OperatorThere, run: Run) -> None:
    there.tell_of(a_group(example.members(3, standbys=False), 0))
    ran = run("plan", "wordcount", "--to", "5")
    document = run("plan", "wordcount", "--to", "5", "-o", "json").document
    (only,) = document["outcomes"]
    uncertain = only["ways"]["uncertain"]
    assert uncertain
    assert all({3, 4} <= set(one["pods"]) for one in uncertain)
    assert (
        f"{len(uncertain)} tasks can end on one of several pods: IDs and the order of members decide, and both are "
        f"unknown before. The picture is one of {only['ways']['played']} ways that were played." in ran.out
    )
    assert "Brokers give new pods their tasks at once, without a copy" in ran.out


@pytest.mark.usefixtures("there")
def test_compare_shows_other_standbys_in_place_of_another_assignor(run: Run) -> None:
    lines = rows(run("plan", "wordcount", "--to", "2", "--compare").out)
    assert lines[0].startswith("2 sticky * ")
    assert lines[1].startswith("2 sticky, 0 standbys 2 ")
    assert lines[2].startswith("2 sticky, 2 standbys 2 ")
    assert {line.split()[0] for line in lines[3:]} == {"1"}


@pytest.mark.parametrize(
    ("streams", "why"),
    [
        ({"broker_release": None}, "the coordinator is of another release than 4.2, 4.3 and 4.4"),
        ({"broker_release": "4.4", "assignor": "balanced"}, "the group's assignor is `balanced`"),
    ],
)
def test_an_unknown_assignor_gives_a_sentence_and_no_number(
    there: OperatorThere, run: Run, streams: Json, why: str
) -> None:
    there.tell_of(a_group(**streams))
    ran = run("plan", "wordcount", "--to", "2")
    assert (ran.code, ran.out) == (1, "")
    assert an_error(ran.err)[1] == f"nothing can be predicted of what its brokers assign: {why}"


@pytest.mark.usefixtures("there")
def test_options_of_members_that_assign_are_refused(run: Run) -> None:
    ran = run("plan", "wordcount", "--to", "2", "--assignor", "stock", "--warmups", "4")
    assert ran.code == 1
    assert "`--assignor` and `--warmups` have no effect" in an_error(ran.err)[1]


def test_an_operator_that_reports_no_members_is_named(there: OperatorThere, run: Run) -> None:
    there.tell_of(a_patient())
    assert "does not report members and settings" in an_error(run("plan", "wordcount", "--to", "2").err)[1]


def test_without_the_agent_the_scale_down_is_held(cluster: Cluster, there: OperatorThere, run: Run) -> None:
    cluster.put(an_app(changes={"spec.agent": {"enabled": False}}))
    there.tell_of(of_streams_protocol(a_patient(SPREAD), standbys=StandbySetting(1, is_set=True)))
    out = run("plan", "wordcount", "--to", "2").out
    assert "without the agent, positions are unknown (PositionsNotReported)" in out
    assert "the lags of 6 copies are not known; they count as empty" in out
    assert "heartbeats every 5 s" in out


def test_standbys_that_are_raised_count_for_the_least_copies(cluster: Cluster, there: OperatorThere, run: Run) -> None:
    cluster.put(an_app("OnDemand", {"spec.scaleDown.minCopies": 2}))
    bare = example.members(3, standbys=False)
    there.tell_of(a_group(bare, 0, source=LearnerSource.ON_DEMAND))
    found = run("plan", "wordcount", "--to", "2", "-o", "json").document["warnings"]
    there.tell_of(a_group(bare, 0))
    without = run("plan", "wordcount", "--to", "2", "-o", "json").document["warnings"]
    few = "fewer copies than `scaleDown.minCopies` asks for"
    assert any("6 tasks have " + few in one for one in without)
    assert not any("6 tasks have " + few in one for one in found)


def test_the_members_of_a_pod_that_has_left_are_waited_for(there: OperatorThere, run: Run) -> None:
    subject = a_group()
    snapshot = subject.snapshot
    assert snapshot.workload.statefulset is not None
    smaller = replace(snapshot.workload, statefulset=replace(snapshot.workload.statefulset, replicas=2))
    there.tell_of(replace(subject, snapshot=replace(snapshot, workload=smaller)))
    status = SETTLED | {"groupProtocol": "streams", "learnerSource": "Standbys", "statefulSetReplicas": 2}
    there.cluster.put(a_resource(status, {"spec.replicas": 2, **AGENT}))
    ran = run("plan", "wordcount", "--to", "1")
    assert "pod 2 still has members" in an_error(ran.err)[1]
