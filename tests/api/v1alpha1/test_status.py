from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from streamapp.api.validation.parse import InvalidStreamApp, parse
from streamapp.core.facts.agent_reports import (
    AgentReply,
    AgentReport,
    AgentSilent,
    AgentsSeen,
    AnnouncementAck,
    AnnouncementState,
)
from streamapp.core.facts.group import GroupDescription, GroupState
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.workload import Volume
from streamapp.core.reasons import Reason
from tests.builders import NOW, a_pod, a_reading, a_record, a_snapshot, an_unreadable, seconds
from tests.conformance import kstatus
from tests.statuses import answer, held_status
from tests.streamapps import ABSENT, a_streamapp, stored
from tests.support import example, state_table
from tests.support.state_table import GroupCondition, HoldState, LearnerState, WishState
from tests.support.streams import streams_group, streams_reading

Json = dict[str, Any]


MEMBERS = [
    {
        "ordinal": ordinal,
        "processId": str(example.process_id(ordinal)),
        "volume": f"state-wordcount-{ordinal}",
        "active": 2,
        "learners": 2,
    }
    for ordinal in range(3)
]


def a_held_scale_down() -> Json:
    return {
        "observedGeneration": 1,
        "replicas": 3,
        "selector": "streamapp.dev/app=wordcount",
        "statefulSetReplicas": 3,
        "readyReplicas": 3,
        "learnerSource": "Standbys",
        "groupProtocol": "classic",
        "convergence": {
            "state": "Converging",
            "progress": 0,
            "tasks": 6,
            "running": 6,
            "learners": 6,
            "caughtUp": 0,
            "remainingLag": 240_000,
            "lagFalling": False,
            "slowest": [
                {"task": "0_0", "ordinal": 1, "lag": 50_000},
                {"task": "0_1", "ordinal": 1, "lag": 50_000},
                {"task": "0_2", "ordinal": 2, "lag": 50_000},
            ],
        },
        "scaleDown": {
            "holdId": "h-1",
            "target": 2,
            "desired": {"replicas": 2, "since": "2026-11-21T11:50:00Z", "generation": 1},
            "since": "2026-11-21T11:59:00Z",
            "lastProgress": "2026-11-21T12:00:00Z",
            "nextOrdinal": 2,
            "waitingFor": 2,
            "lagFalling": False,
            "reason": "LearnersCatchingUp",
        },
        "members": MEMBERS,
        "lastSteps": [],
    }


def test_a_held_scale_down_is_reported_in_full() -> None:
    status = held_status()
    conditions = status.pop("conditions")
    assert status == a_held_scale_down()
    assert {condition["type"]: condition["status"] for condition in conditions} == {
        "Ready": "True",
        "Reconciling": "False",
        "Stalled": "False",
        "Converged": "False",
        "ScaleDownHeld": "True",
        "ProcessIdentityStable": "True",
        "KafkaReachable": "True",
        "LearnersAvailable": "True",
        "DisruptionAllowed": "True",
        "AutoscalingHealthy": "True",
    }


def test_a_condition_is_a_reason_with_its_note_its_particulars_and_its_time() -> None:
    held = held_status(generation=7)["conditions"][4]
    assert held == {
        "type": "ScaleDownHeld",
        "status": "True",
        "observedGeneration": 7,
        "lastTransitionTime": "2026-11-21T12:00:00Z",
        "reason": "LearnersCatchingUp",
        "message": "Copies on the remaining pods are still behind. 2 tasks wait; 0_5 on ordinal 0 is 50000 records "
        "behind.",
    }


def test_a_condition_that_asks_for_something_says_what() -> None:
    status = answer(a_snapshot(desired=3, members=example.members(3, standbys=False), record=None))
    learners = next(one for one in status["conditions"] if one["type"] == "LearnersAvailable")
    assert (learners["status"], learners["message"]) == (
        "False",
        "A stateful task has no copy on a remaining pod, and the application makes none. With the streams protocol and "
        "OnDemand, wait: the operator raises the standbys of the group. Else set `num.standby.replicas` (with the "
        "streams protocol: `streams.num.standby.replicas` of the group) to at least 1, or override coverage for this "
        "hold with the annotation `streamapp.dev/override`.",
    )


def test_a_condition_that_is_well_asks_for_nothing() -> None:
    ready = answer(a_snapshot(app={"paused": True}))["conditions"][0]
    assert (ready["status"], ready["message"]) == (
        "True",
        "The StreamApp is paused. The operator finishes an open step, and scales, restarts and prepares nothing else. "
        "3 of 3 pods are ready.",
    )


@pytest.mark.parametrize(
    ("ready", "granted", "desired", "detail"),
    [
        (2, 3, 3, "2 of 3 pods are ready; ordinal 2."),
        (3, 3, 5, "3 of 5 pods are ready."),
        (3, 2, 2, "3 of 3 pods are ready."),
    ],
    ids=["one is missing", "more are wished for", "one is going"],
)
def test_ready_says_how_many_pods_are(ready: int, granted: int, desired: int, detail: str) -> None:
    pods = tuple(a_pod(number, ready=number < ready) for number in range(3))
    snapshot = a_snapshot(desired=desired, record=None, statefulset={"replicas": granted}, workload={"pods": pods})
    assert f" {detail}" in answer(snapshot)["conditions"][0]["message"]


@pytest.mark.parametrize(
    ("snapshot", "verdict"),
    [
        pytest.param(a_snapshot(desired=3, record=None), "Current", id="steady"),
        pytest.param(a_snapshot(members=example.members(3, lag=50_000)), "Current", id="held"),
        pytest.param(a_snapshot(desired=5, record=None), "InProgress", id="growing"),
        pytest.param(a_snapshot(), "InProgress", id="a step"),
        pytest.param(a_snapshot(record=None, workload={"statefulset": None}), "InProgress", id="no StatefulSet"),
        pytest.param(
            a_snapshot(desired=3, record=None, workload={"pods": (a_pod(0), a_pod(1), a_pod(2, ready=False))}),
            "InProgress",
            id="a pod is not ready",
        ),
        pytest.param(a_snapshot(app={"fault": "spec.kafka is required"}), "Failed", id="invalid"),
        pytest.param(a_snapshot(app={"paused": True}), "Current", id="paused"),
        pytest.param(a_snapshot(desired=3, record=None, readings=(an_unreadable(),)), "Current", id="brokers away"),
        pytest.param(a_snapshot(record=a_record(gave_up_at=1)), "Failed", id="given up"),
    ],
)
def test_tools_that_wait_see_a_hold_as_healthy_and_a_stall_as_a_failure(snapshot: Snapshot, verdict: str) -> None:
    assert kstatus(answer(snapshot), snapshot.app.generation) == verdict


def test_a_generation_that_was_not_decided_about_is_in_progress() -> None:
    assert kstatus(held_status(generation=1), 2) == "InProgress"


EVERY_STATE = list(product(WishState, HoldState, LearnerState, GroupCondition))


@pytest.mark.parametrize("desired", WishState, ids=lambda desired: desired.value)
@pytest.mark.guarantee(8)
def test_every_cell_of_the_state_table_has_a_status_that_conforms(desired: WishState) -> None:
    policy = ScalingPolicy(allow_zero=desired is WishState.ZERO_ALLOWED)
    for hold, learners, group in product(HoldState, LearnerState, GroupCondition):
        snapshot = state_table.a_snapshot(desired, hold, learners, group)
        first = answer(snapshot, policy=policy)
        later = replace(snapshot, now=snapshot.now + seconds(3))
        answer(later, policy=policy, previous=first)


def test_a_condition_keeps_its_time_while_its_status_is_the_same() -> None:
    first = held_status()
    later = a_snapshot(members=example.members(3, lag=20_000), now=NOW + seconds(30))
    second = answer(later, previous=first)
    assert second["conditions"][4]["message"] != first["conditions"][4]["message"]
    assert {one["lastTransitionTime"] for one in second["conditions"]} == {"2026-11-21T12:00:00Z"}


def test_a_condition_whose_status_changes_has_a_new_time() -> None:
    steady = answer(a_snapshot(desired=3, record=None))
    later = a_snapshot(members=example.members(3, lag=50_000), now=NOW + seconds(1.5))
    moved = {
        one["type"]: one["lastTransitionTime"]
        for one in answer(later, previous=steady)["conditions"]
        if one["lastTransitionTime"] != "2026-11-21T12:00:00Z"
    }
    assert moved == dict.fromkeys(["Converged", "ScaleDownHeld"], "2026-11-21T12:00:01Z")


def test_a_statefulset_that_is_gone_leaves_what_it_had_on_record() -> None:
    gone = a_snapshot(record=None, workload={"statefulset": None, "pods": ()})
    status = answer(gone, previous=held_status())
    assert (status["statefulSetReplicas"], status["replicas"], status["readyReplicas"]) == (3, 0, 0)


def test_a_new_streamapp_has_granted_nothing_yet() -> None:
    assert "statefulSetReplicas" not in answer(
        a_snapshot(record=None, workload={"statefulset": None, "pods": ()}, readings=())
    )


def test_pods_that_are_about_to_go_count_as_pods() -> None:
    """An autoscaler divides the load by them."""
    pods = (a_pod(0), a_pod(1), a_pod(2, terminating=True))
    status = answer(a_snapshot(statefulset={"replicas": 2}, record=None, workload={"pods": pods}))
    assert (status["replicas"], status["statefulSetReplicas"], status["readyReplicas"]) == (3, 2, 2)


def test_what_the_group_does_not_show_is_left_out_and_what_is_recorded_stays() -> None:
    before = held_status()
    status = answer(a_snapshot(readings=(an_unreadable(),)), previous=before)
    assert (status["learnerSource"], status["groupProtocol"]) == ("Standbys", "classic")
    assert status["convergence"] == {"state": "Unknown", "slowest": []}
    assert status["members"][0] == {
        "ordinal": 0,
        "processId": str(example.process_id(0)),
        "volume": "state-wordcount-0",
    }


def test_a_group_of_the_streams_protocol_is_reported_as_one() -> None:
    group = GroupDescription(GroupState.EMPTY, streams=streams_group())
    snapshot = a_snapshot(readings=(replace(a_reading(()), group=group),))
    assert answer(snapshot, previous=held_status())["groupProtocol"] == "streams"


def test_a_group_of_another_protocol_is_not_called_classic() -> None:
    snapshot = a_snapshot(readings=(an_unreadable(reason=Reason.GroupProtocolUnsupported),))
    assert "groupProtocol" not in answer(snapshot, previous=held_status())


def test_a_group_that_rebalances_shows_no_tasks_of_pods() -> None:
    members = tuple(replace(member, subscription=None) for member in example.members())
    reading = replace(example.reading(members, seconds(1), GroupState.PREPARING_REBALANCE), rebalance=None)
    status = answer(a_snapshot(readings=(reading,)))
    assert "active" not in status["members"][0]
    assert "learnerSource" not in status


def test_a_process_without_a_recorded_id_is_named_by_what_it_shows() -> None:
    volumes = tuple(Volume(ordinal=Ordinal(number), process_id=None) for number in range(3))
    status = answer(a_snapshot(workload={"volumes": volumes}))
    assert status["members"][2]["processId"] == str(example.process_id(2))


def test_without_state_there_are_no_volumes() -> None:
    snapshot = a_snapshot(app={"keeps_state": False}, workload={"volumes": ()})
    status = answer(snapshot, found=a_streamapp({"spec.state": ABSENT}))
    assert "volume" not in status["members"][0]


def test_two_hundred_pods_are_listed_and_no_more() -> None:
    pods = tuple(replace(example.pod(0), ordinal=Ordinal(number), uid=f"pod-{number}") for number in range(201))
    status = answer(a_snapshot(desired=201, record=None, statefulset={"replicas": 201}, workload={"pods": pods}))
    assert [member["ordinal"] for member in status["members"]] == list(range(200))
    assert status["replicas"] == 201


def test_an_invalid_streamapp_has_a_status_that_says_so() -> None:
    found = parse(stored({"spec.kafka": ABSENT}))
    assert isinstance(found, InvalidStreamApp)
    status = answer(a_snapshot(app={"fault": found.sentence}), found=found)
    stalled = status["conditions"][2]
    assert (stalled["status"], stalled["reason"], stalled["message"]) == (
        "True",
        "InvalidSpec",
        "The StreamApp's spec is not valid. Until it is, the operator changes no pod; a raise still ends a hold. "
        "spec.kafka is required. Correct the field that the message names.",
    )
    assert (status["selector"], status["replicas"]) == ("streamapp.dev/app=wordcount", 3)


def a_word(ordinal: int, *, is_ours: bool = True) -> AgentReport:
    return AgentReport(
        ordinal=Ordinal(ordinal),
        pod_uid=a_pod(ordinal).uid,
        incarnation="i",
        sequence=2,
        as_of=NOW,
        process_id=example.process_id(ordinal),
        tasks=(),
        heard=AnnouncementAck(state=AnnouncementState.EMPTY),
        is_ours=is_ours,
        recovery_lag=10_000,
    )


def before(word: AgentReply) -> tuple[AgentReply, ...]:
    """What the same agent said five seconds earlier."""
    if isinstance(word, AgentSilent):
        return ()
    return (replace(word, sequence=word.sequence - 1, as_of=word.as_of - seconds(5)),)


def heard(*words: AgentReply) -> Json:
    """The status where the agents of three pods have said this."""
    seen = AgentsSeen({word.ordinal: (word, *before(word)) for word in words})
    on = a_streamapp({"spec.agent.enabled": True})
    return answer(a_snapshot(desired=3, record=None, agents=seen), found=on)


def test_a_member_says_what_its_agent_does() -> None:
    status = heard(a_word(0), a_word(1, is_ours=False), AgentSilent(Ordinal(2), "no answer"))
    assert [member.get("agent") for member in status["members"]] == ["Active", "Inactive", "Unreachable"]
    assert [member.get("agent") for member in held_status()["members"]] == [None] * 3


def test_copies_come_on_demand_only_where_every_agent_says_so() -> None:
    assert heard(*map(a_word, range(3)))["learnerSource"] == "OnDemand"
    assert heard(a_word(0), a_word(1), a_word(2, is_ours=False))["learnerSource"] == "Standbys"
    assert heard(a_word(0), a_word(1))["learnerSource"] == "Standbys"


def test_with_the_streams_protocol_no_agent_is_inactive() -> None:
    seen = AgentsSeen({number: (a_word(number, is_ours=False),) for number in map(Ordinal, range(3))})
    readings = tuple(streams_reading(example.members(3), ago) for ago in (1, 11))
    on = a_streamapp({"spec.agent.enabled": True})
    status = answer(a_snapshot(desired=3, record=None, agents=seen, readings=readings), found=on)
    assert ([member["agent"] for member in status["members"]], status["groupProtocol"]) == (["Active"] * 3, "streams")


def test_what_agents_said_of_copies_is_over_when_they_fall_silent() -> None:
    moving = a_snapshot(desired=3, record=None, readings=(an_unreadable(),))
    assert "learnerSource" not in answer(moving, previous={"learnerSource": "OnDemand"})
    assert answer(moving, previous={"learnerSource": "Standbys"})["learnerSource"] == "Standbys"
