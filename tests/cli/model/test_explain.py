"""The sentences of `explain`: what they say in each state, and that they advise only what is there."""

import re
from dataclasses import replace

import pytest

from streamapp.cli.model.explain import Question, explain
from streamapp.core.facts.agent_reports import AgentSilent, AgentsSeen
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import DisruptionPolicy, LearnerSource, ScalingPolicy
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.facts.workload import UNSCHEDULABLE, NodeDrain
from streamapp.core.reasons import Reason
from tests.builders import NOW, a_pod, a_record, a_snapshot, a_step, a_wish, an_unreadable, pods, seconds
from tests.cli.showing import Json, a_resource, one_line, screen
from tests.cli.states import every_cell
from tests.statuses import answer, held_status
from tests.streamapps import ABSENT
from tests.support import example

HELD = {"spec.replicas": 2}
OVERRIDE = (
    "To let the pods of this scale-down leave without caught-up copies (all other checks stay; tasks without a copy "
    "are restored from their changelogs, and their users wait): `kubectl streamapp override wordcount "
    "--namespace demo --hold-id h-1 --reason '<why>'`"
)
CALL_OFF = (
    "To cancel the scale-down, unless an autoscaler sets its number again: `kubectl streamapp scale wordcount "
    "--namespace demo 3`"
)


FOLLOWS = ScalingPolicy(disruption=DisruptionPolicy.WHEN_CAUGHT_UP)
DRAINED = a_snapshot(
    desired=3,
    record=None,
    members=example.members(3, standbys=False),
    workload={"pods": pods(3, p1=a_pod(1, drain=NodeDrain("blue", UNSCHEDULABLE))), "budget_lease": 0},
)


def answers(resource: Json, *, later: float = 0) -> dict[Question, tuple[str, ...]]:
    return dict(explain(resource, NOW + seconds(later)).answers)


def test_a_hold_is_explained_from_the_wish_to_the_way_out() -> None:
    told = answers(a_resource(held_status(), HELD), later=7)
    assert told == {
        Question.WANTED: ("Desired 2, current 3 (3 running, 3 ready).",),
        Question.WHY: (
            "Copies on the remaining pods are still behind. 2 tasks wait; 0_5 on ordinal 0 is 50000 records behind. "
            "(LearnersCatchingUp)",
        ),
        Question.SINCE: (
            "The scale-down began 1m7s ago, at 2026-11-21 11:59:00 UTC.",
            "The lag last decreased 7s ago.",
        ),
        Question.WAITS_FOR: (
            "2 tasks have no caught-up copy on a remaining pod.",
            "0 of 6 copies are caught up.",
            "The remaining lag is 240,000 records.",
            "Task 0_0 is furthest behind: its best copy is on pod 1, 50,000 records behind.",
        ),
        Question.HOW_LONG: (
            "Until the copies for the next pod are caught up: never at the present rate. The lag does not decrease.",
        ),
        Question.ENDS: (
            "Pod 2 is removed once two consecutive checks find every stateful task running or caught up on a remaining "
            "pod.",
            "Setting the replicas to 3 or more cancels the scale-down at once.",
            "After 1h without progress (in 59m53s at the earliest), the scale-down keeps waiting and is reported as "
            "Stalled (`onTimeout: Wait`).",
        ),
        Question.YOU_CAN: ("No action needed.", CALL_OFF, OVERRIDE),
    }


def test_with_the_streams_protocol_it_says_that_the_brokers_choice_is_played_too() -> None:
    classic, streams = (a_resource({**held_status(), **of}, HELD) for of in ({}, {"groupProtocol": "streams"}))
    (added,) = set(answers(streams, later=7)[Question.ENDS]) - set(answers(classic, later=7)[Question.ENDS])
    assert added == "The checks also play the brokers' assignor: each of these tasks must go to a caught-up copy."


@pytest.mark.parametrize("desired", [2, 3])
def test_a_key_that_is_missing_is_said_first_with_its_command(desired: int) -> None:
    why = "the operator has no key for agents: the file is not there"
    silent = {Ordinal(one): (AgentSilent(Ordinal(one), why),) for one in range(3)}
    members = example.members(3, lag=500_000, standbys=False)
    snapshot = replace(
        a_snapshot(members=members, desired=desired, record=None, agents=AgentsSeen(silent, no_key=why)),
        task_set=TopologyUnknown("there are two sub-topologies"),
    )
    status = answer(snapshot, policy=ScalingPolicy(agent=True, source=LearnerSource.ON_DEMAND))
    resource = a_resource(status, {"spec.replicas": desired})
    told, missing = answers(resource), Reason.AgentKeyMissing
    assert told[Question.WHY][0] == f"{missing.note} {why}. (AgentKeyMissing)"
    assert told[Question.YOU_CAN][0] == missing.next_step
    assert sum("AgentKeyMissing" in sentence for sentence in told[Question.WHY]) == 1
    assert f"{missing.note} {why}" in one_line(screen(resource)).partition("desired")[0]


def test_a_settled_application_raises_few_questions() -> None:
    told = answers(a_resource(answer(a_snapshot(desired=3, record=None))), later=90)
    assert told == {
        Question.WANTED: ("Desired 3, current 3 (3 running, 3 ready).",),
        Question.WHY: (f"{Reason.Converged.note} (Converged)",),
        Question.SINCE: ("The state has been settled for 1m30s, since 2026-11-21 12:00:00 UTC.",),
        Question.YOU_CAN: ("No action needed.",),
    }


@pytest.mark.parametrize(
    ("changes", "then"),
    [
        (
            {"spec.scaleDown": {"onTimeout": "GiveUp"}},
            "After 1h of waiting for one pod (in 59m at the earliest), the operator gives the scale-down up until the "
            "spec changes (`onTimeout: GiveUp`).",
        ),
        (
            {"spec.scaleDown": {"onTimeout": "Proceed", "reason": "cost", "timeout": "2h"}},
            "After 2h of waiting for one pod (in 1h59m at the earliest), pods leave without caught-up copies, one at a "
            "time (reason: cost) (`onTimeout: Proceed`).",
        ),
    ],
    ids=["give up", "proceed"],
)
def test_what_happens_at_the_deadline_is_what_the_spec_says(changes: Json, then: str) -> None:
    told = answers(a_resource(held_status(), HELD | changes))
    assert told[Question.ENDS][-1] == then


def test_the_missing_standbys_are_advised_with_the_reasons_own_words() -> None:
    status = answer(a_snapshot(members=example.members(3, standbys=False)))
    told = answers(a_resource(status, HELD))
    assert told[Question.YOU_CAN] == (Reason.NoLearners.next_step, CALL_OFF, OVERRIDE)
    assert Reason.NoLearners.next_step not in " ".join(told[Question.WHY])


def test_what_a_release_does_not_override_is_not_advised_to_be_released() -> None:
    told = answers(a_resource(answer(a_snapshot(readings=(an_unreadable(),))), HELD))
    assert told[Question.YOU_CAN] == (Reason.BrokersUnreachable.next_step, CALL_OFF)


def test_an_estimate_by_learned_rates_says_so() -> None:
    status = held_status()
    status["scaleDown"] |= {"estimatedCompletionTime": "2026-11-21T12:02:00Z", "estimateSource": "Learned"}
    assert answers(a_resource(status, HELD))[Question.HOW_LONG] == (
        "Until the copies for the next pod are caught up: about 2m. The estimate is by restore rates of earlier days.",
    )


def test_who_holds_is_answered_with_the_command_that_ends_it() -> None:
    told = answers(a_resource(answer(a_snapshot(app={"held_because": "Black Friday"})), HELD))
    assert told[Question.YOU_CAN] == (
        Reason.HeldByUser.next_step,
        "To end the user's hold: `kubectl streamapp unhold wordcount --namespace demo`",
        CALL_OFF,
    )


@pytest.mark.parametrize("app", [{"held_because": "Black Friday"}, {"desired": a_wish(2, (10, 2))}])
def test_a_hold_that_waits_for_no_copies_is_given_no_time_until_they_are_caught_up(app: Json) -> None:
    told = answers(a_resource(answer(a_snapshot(app=app, record=None)), HELD))
    assert Question.ENDS in told
    assert Question.HOW_LONG not in told


def test_a_wish_that_is_too_young_is_told_how_old_it_has_to_be_in_seconds() -> None:
    told = answers(a_resource(answer(a_snapshot(app={"desired": a_wish(2, (10, 2))})), HELD))
    assert "It must last for 30 s, which is until" in told[Question.WHY][0]


def test_a_hold_that_is_overridden_already_is_not_advised_to_be_released_again() -> None:
    status = held_status()
    status["scaleDown"]["forced"] = {"by": "Override", "reason": "INC-7"}
    assert OVERRIDE not in answers(a_resource(status, HELD))[Question.YOU_CAN]


@pytest.mark.parametrize(
    ("resource", "ends"),
    [
        (
            a_resource(answer(a_snapshot(app={"held_because": "Black Friday"})), HELD),
            Reason.HeldByUser.row.hold_ends,
        ),
        (
            a_resource(answer(a_snapshot(desired=0)), {"spec.replicas": 0, "spec.scaleDown": {"allowZero": False}}),
            "It ends when `scaleDown.allowZero` is set, or desired replicas are at least 1.",
        ),
        (
            a_resource(answer(a_snapshot(record=a_record(gave_up_at=1))), HELD),
            "The setting `onTimeout: GiveUp` ended it; a change of the spec starts a new scale-down.",
        ),
        (
            a_resource(answer(a_snapshot(desired=5, record=None)), {"spec.replicas": 5}),
            "It ends by itself, when all current replicas exist and are ready.",
        ),
        (
            a_resource(answer(a_snapshot(record=a_record(step=a_step()))), HELD),
            "The change ends once the pod is gone, its members have left the group, and every task runs again.",
        ),
        (
            a_resource(answer(a_snapshot(desired=3, record=None, members=example.members(3, lag=50_000)))),
            "The state ends once the group is stable, every task runs, every copy is caught up and every pod is ready.",
        ),
        (
            a_resource(answer(DRAINED, policy=FOLLOWS)),
            "It ends when the pods have left the node, or the node is uncordoned.",
        ),
    ],
    ids=["held by the user", "zero", "given up", "growing", "a step", "converging", "a drain"],
)
def test_what_ends_a_state(resource: Json, ends: str) -> None:
    assert answers(resource)[Question.ENDS][0] == ends


def test_a_spec_that_is_wrong_is_told_with_its_field_where_no_operator_runs() -> None:
    told = answers(a_resource(None, {"spec.kafka": ABSENT}))
    assert told[Question.WHY] == (
        "The operator has never answered: the StreamApp has no status.",
        f"{Reason.InvalidSpec.note} spec.kafka is required. (InvalidSpec)",
    )
    assert told[Question.YOU_CAN] == (
        "Correct the field that is named above.",
        "Check that the operator runs and watches this namespace, and read its log.",
    )


def test_a_status_of_an_older_spec_explains_nothing_as_if_it_were_new() -> None:
    told = answers(a_resource(held_status(), HELD, generation=9))
    assert told[Question.WHY] == (
        "The status is older than the spec: the status is for generation 1, and the spec has generation 9.",
    )
    assert Question.ENDS not in told
    assert told[Question.YOU_CAN] == ("Check that the operator runs and watches this namespace, and read its log.",)


def test_what_else_is_wrong_is_said_beside_the_hold() -> None:
    pods = (a_pod(0), a_pod(1, ready=False), a_pod(2))
    status = answer(a_snapshot(members=example.members(3, lag=50_000), workload={"pods": pods}))
    told = answers(a_resource(status, HELD))
    assert told[Question.WHY][1].startswith(f"Also, Ready is false: {Reason.PodsNotReady.note}")
    assert Reason.PodsNotReady.next_step in told[Question.YOU_CAN]


def test_a_reason_of_a_newer_operator_is_told_as_it_is() -> None:
    status = held_status()
    for condition in status["conditions"]:
        if condition["type"] == "ScaleDownHeld":
            condition |= {"reason": "MoonTooFull", "message": "The moon is too full. Wait a week."}
    status["scaleDown"]["reason"] = "MoonTooFull"
    told = answers(a_resource(status, HELD))
    assert told[Question.WHY][0] == "The moon is too full. Wait a week. (MoonTooFull)"


def test_every_cell_of_the_state_table_is_explained_in_whole_sentences() -> None:
    for resource in every_cell():
        told = answers(resource)
        assert told[Question.YOU_CAN]
        for sentence in (one for sentences in told.values() for one in sentences):
            assert re.fullmatch(r"[A-Z0-9`].*([.)]|: `kubectl .*`)", sentence), sentence
            assert "None" not in sentence


@pytest.mark.slow
def test_only_holds_that_a_release_can_end_are_advised_to_be_released() -> None:
    for resource in every_cell():
        told = answers(resource)
        advised = any("kubectl streamapp override" in sentence for sentence in told[Question.YOU_CAN])
        reason = resource["status"].get("scaleDown", {}).get("reason", "")
        assert not advised or Reason[reason].row.is_overridable
