from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from streamapp.api.status.progress import completion_time, lag_falling, scale_down_status
from streamapp.api.v1alpha1.status import DesiredStatus, ScaleDownStatus
from streamapp.core.decide import decide
from streamapp.core.evidence.eta import Estimate, EtaAt, NeverAtThisSpeed, NotKnown
from streamapp.core.facts.hold_record import Forced, ForcedBy
from streamapp.core.facts.policy import ScaleDownPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import DesiredReplicas, Episode
from streamapp.core.status.gaps import Gap, GapUnknown
from tests.builders import NOW, a_record, a_snapshot, a_step, a_wish, ago, seconds
from tests.statuses import answer, held_status
from tests.support import example

CLOSED = a_snapshot(record=a_record(step=a_step()))
"""Three pods are left of four, the fourth has gone with its members: the step from 4 to 3 is finished."""

LAST = replace(a_record(step=a_step()), hold=None)
"""The hold itself left the record with the grant of its last step."""

Json = dict[str, Any]

STEP: Json = {"from": 4, "to": 3, "at": "2026-11-21T11:59:30Z", "heldDuration": "30s", "duration": "30s"}


@pytest.mark.parametrize(
    ("estimate", "instant"),
    {
        "now": (EtaAt(NOW), NOW),
        "in the past": (EtaAt(ago(7)), ago(5)),
        "seconds": (EtaAt(NOW + seconds(1)), NOW + seconds(5)),
        "under two minutes": (EtaAt(NOW + seconds(101)), NOW + seconds(105)),
        "minutes": (EtaAt(NOW + seconds(185)), NOW + seconds(210)),
        "under four hours": (EtaAt(NOW + timedelta(hours=1, minutes=1)), NOW + timedelta(hours=1, minutes=5)),
        "days": (EtaAt(NOW + timedelta(hours=50, minutes=1)), NOW + timedelta(hours=51)),
        "never": (NeverAtThisSpeed(), None),
        "not known": (NotKnown(), None),
    }.values(),
    ids=str,
)
def test_an_estimate_is_rounded_up_the_more_the_longer_it_is(estimate: Estimate, instant: datetime | None) -> None:
    assert completion_time(estimate, NOW) == instant


@pytest.mark.parametrize("later", [0, 1, 7, 40])
def test_an_estimate_that_holds_keeps_its_instant(later: float) -> None:
    assert completion_time(EtaAt(NOW + seconds(101.5)), NOW + seconds(later)) == NOW + seconds(105)


@pytest.mark.parametrize(
    ("estimate", "falling"), [(EtaAt(NOW), True), (NeverAtThisSpeed(), False), (NotKnown(), None)], ids=str
)
def test_the_lag_falls_if_two_readings_show_so(estimate: Estimate, falling: bool | None) -> None:
    assert lag_falling(estimate) is falling


def test_a_closing_speed_gives_an_eta() -> None:
    """14 s apart, 80 000 and then 50 000 records behind: the 40 000 that are too many take 19 s more."""
    readings = (
        example.reading(example.members(3, lag=50_000), seconds(1)),
        example.reading(example.members(3, lag=80_000), seconds(15)),
    )
    status = answer(a_snapshot(readings=readings))
    for part in (status["convergence"], status["scaleDown"]):
        assert (part["estimatedCompletionTime"], part["lagFalling"]) == ("2026-11-21T12:00:20Z", True)


def test_progress_is_the_share_of_the_lag_that_is_worked_off() -> None:
    began = Episode(began_at=ago(60), lag_at_start=640_000, least_lag=600_000)
    status = answer(a_snapshot(members=example.members(3, lag=50_000), episode=began))
    assert (status["convergence"]["progress"], status["convergence"]["remainingLag"]) == (62, 240_000)


def test_a_copy_whose_lag_nobody_knows_has_none() -> None:
    status = answer(a_snapshot(members=example.members(3, lag=None)))
    assert status["convergence"]["slowest"][0] == {"task": "0_0", "ordinal": 1}
    assert "remainingLag" not in status["convergence"]


def test_a_task_that_restores_without_a_copy_is_behind_by_all_there_is() -> None:
    members = tuple(example.member(pod, active=(2 * pod, 2 * pod + 1), running=pod != 0, lag=0) for pod in range(3))
    slowest = answer(a_snapshot(members=members))["convergence"]["slowest"]
    assert slowest == [
        {"task": "0_0", "ordinal": 0, "lag": example.END},
        {"task": "0_1", "ordinal": 0, "lag": example.END},
    ]


def test_what_is_held_before_it_is_on_record_has_no_id_yet_and_began_when_desired_replicas_fell() -> None:
    status = answer(a_snapshot(record=None, app={"held_because": "the month is being closed"}))
    assert status["scaleDown"] == {
        "target": 2,
        "desired": {"replicas": 2, "since": "2026-11-21T11:50:00Z", "generation": 1},
        "since": "2026-11-21T11:50:00Z",
        "nextOrdinal": 2,
        "waitingFor": 0,
        "reason": "HeldByUser",
    }


@pytest.mark.guarantee(8)
@pytest.mark.parametrize(
    ("generation", "since"), [(5, "11:30"), (6, "11:30"), (7, "11:50")], ids=["same", "one change", "two changes"]
)
def test_what_is_held_before_it_is_on_record_keeps_its_start_unless_a_raise_can_lie_between(
    generation: int, since: str
) -> None:
    held = a_snapshot(record=None, app={"held_because": "the month is being closed", "generation": generation})
    noted = DesiredStatus(replicas=1, since=ago(1800), generation=5)
    before = ScaleDownStatus(target=1, desired=noted, since=ago(1800), reason="HeldByUser")
    told = scale_down_status(decide(held, ScalingPolicy()), held, before)
    assert told is not None
    assert told.since == datetime.fromisoformat(f"2026-11-21T{since}:00Z")


@pytest.mark.parametrize(
    ("desired", "since"),
    [
        pytest.param(a_wish(2, (600, 3), (20.4, 2)), ago(20), id="first seen, rounded up"),
        pytest.param(replace(a_wish(2, (20, 2)), unchanged_since=ago(90)), ago(90), id="as the API server dates it"),
        pytest.param(replace(a_wish(2, (20, 2)), unchanged_since=ago(5)), ago(20), id="dated anew since"),
        pytest.param(a_wish(2, (20, 1)), None, id="not seen yet"),
        pytest.param(a_wish(3, (20, 3)), None, id="no lower number"),
    ],
)
def test_the_next_leader_is_told_since_when_a_lower_number_is_desired(
    desired: DesiredReplicas, since: datetime | None
) -> None:
    record = a_record(step=a_step(granted_at=ago(2)))
    members = (*example.members(3), example.member(3))
    noted = answer(a_snapshot(record=record, members=members, app={"desired": desired}))["scaleDown"].get("desired")
    told = None if noted is None else (noted["replicas"], datetime.fromisoformat(noted["since"]), noted["generation"])
    assert told == (None if since is None else (2, since, 1))


def test_while_a_user_holds_it_the_target_follows_desired_replicas_and_not_the_record() -> None:
    held = a_snapshot(desired=1, record=a_record(), app={"held_because": "the month is being closed"})
    told = answer(held)["scaleDown"]
    assert (told["target"], told["reason"]) == (1, "HeldByUser")


def test_while_a_step_is_open_its_hold_is_described() -> None:
    record = a_record(step=a_step(granted_at=ago(2)))
    members = (*example.members(3), example.member(3))
    status = answer(a_snapshot(record=record, members=members), previous=held_status())
    assert status["scaleDown"] == {
        "holdId": "h-1",
        "target": 2,
        "desired": {"replicas": 2, "since": "2026-11-21T11:50:00Z", "generation": 1},
        "since": "2026-11-21T11:59:00Z",
        "lastProgress": "2026-11-21T11:59:00Z",
        "nextOrdinal": 2,
        "waitingFor": 0,
        "reason": "EvictionMissed",
    }


def test_the_last_step_keeps_the_hold_described_until_it_is_finished() -> None:
    """The hold itself leaves the record with the last grant; how long it lasted is still to be told."""
    record = replace(LAST, step=a_step(granted_at=ago(2)))
    members = (*example.members(3), example.member(3))
    status = answer(a_snapshot(desired=3, record=record, members=members), previous=held_status())
    assert status["scaleDown"] == {
        "holdId": "h-1",
        "target": 3,
        "since": "2026-11-21T11:59:00Z",
        "waitingFor": 0,
        "reason": "EvictionMissed",
    }


def test_a_raise_does_not_change_what_the_open_step_was_for() -> None:
    record = replace(LAST, step=a_step(granted_at=ago(2)))
    members = (*example.members(3), example.member(3))
    status = answer(a_snapshot(desired=5, record=record, members=members), previous=held_status())
    assert status["scaleDown"] == {
        "holdId": "h-1",
        "target": 3,
        "since": "2026-11-21T11:59:00Z",
        "waitingFor": 0,
        "reason": "Growing",
    }


def test_nothing_is_described_once_it_is_over() -> None:
    assert "scaleDown" not in answer(a_snapshot(desired=3, record=None), previous=held_status())


def test_a_users_word_is_on_record() -> None:
    policy = ScalingPolicy(scale_down=ScaleDownPolicy.IMMEDIATE, force_reason="the state is a cache")
    status = answer(a_snapshot(members=example.members(3, lag=50_000)), policy=policy)
    assert status["scaleDown"]["forced"] == {"by": "Policy", "reason": "the state is a cache"}


def test_a_finished_step_is_put_in_front_of_the_others() -> None:
    before = {**held_status(), "lastSteps": [{**STEP, "from": 5, "to": 4, "at": "2026-11-21T11:50:00Z"}]}
    status = answer(CLOSED, previous=before, gap=Gap(timedelta(milliseconds=140), timedelta(milliseconds=640)))
    assert status["lastSteps"] == [
        {**STEP, "downtimeMax": "640ms", "downtimeUncertainty": "500ms"},
        before["lastSteps"][0],
    ]


def test_the_last_steps_hold_is_known_from_the_status_before() -> None:
    snapshot = a_snapshot(desired=3, record=LAST)
    assert answer(snapshot, previous=held_status())["lastSteps"] == [STEP]


def test_a_step_whose_hold_nobody_remembers_says_nothing_of_it() -> None:
    steps = answer(a_snapshot(desired=3, record=LAST))["lastSteps"]
    assert steps == [{name: value for name, value in STEP.items() if name != "heldDuration"}]


def test_a_gap_that_was_not_seen_to_end_is_no_gap() -> None:
    assert answer(CLOSED, gap=GapUnknown(example.task(0)))["lastSteps"] == [STEP]


def test_a_step_that_is_found_finished_twice_is_told_once() -> None:
    first = answer(CLOSED)
    assert answer(replace(CLOSED, now=NOW + seconds(1)), previous=first)["lastSteps"] == [STEP]


def test_a_forced_step_says_so() -> None:
    forced = Forced(ForcedBy.OVERRIDE, "the copies are of no use")
    status = answer(a_snapshot(record=a_record(step=a_step(forced=forced))))
    assert status["lastSteps"][0]["forced"] == {"by": "Override", "reason": "the copies are of no use"}


def test_ten_steps_are_kept() -> None:
    older: list[Json] = [{**STEP, "at": f"2026-11-21T11:{minute:02}:00Z"} for minute in range(30, 20, -1)]
    status = answer(CLOSED, previous={"lastSteps": older})
    assert status["lastSteps"] == [STEP, *older[:9]]


def test_a_clock_that_was_set_back_makes_no_negative_times() -> None:
    record = a_record(step=a_step(granted_at=NOW + seconds(5)))
    step = answer(a_snapshot(record=record))["lastSteps"][0]
    assert (step["duration"], step["at"]) == ("0s", "2026-11-21T12:00:05Z")
