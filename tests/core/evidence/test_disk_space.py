"""Whether learners fit onto the volumes of the pods that stay."""

from dataclasses import replace

import pytest

from streamapp.core.actions.decision import Announce
from streamapp.core.decide import decide
from streamapp.core.evidence.disk_space import Room, RoomUnknown, room_for_learners
from streamapp.core.facts.agent_reports import AgentReport
from streamapp.core.facts.group import Member
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.reasons import Reason
from tests.builders import a_reading, a_snapshot, told
from tests.support import example

POLICY = ScalingPolicy(agent=True)
BARE = example.members(3, standbys=False)
MEGA = 1_000_000


def reports(state: int | None, free: int | None, members: tuple[Member, ...] = BARE) -> dict[Ordinal, AgentReport]:
    found = [example.report(one, state_bytes=state, free_bytes=free) for one in members]
    return {one.ordinal: one for one in found}


def test_what_leaves_is_needed_and_what_stays_has_room() -> None:
    assert room_for_learners(reports(100, 60), {Ordinal(2)}, example.task_set()) == Room(100, 120)
    assert room_for_learners(reports(100, 60), {Ordinal(1), Ordinal(2)}, example.task_set()) == Room(200, 60)


def test_what_has_been_learned_already_is_not_needed_again() -> None:
    members = (example.member(0, active=(0, 1), standby=(4,)), *BARE[1:])
    assert room_for_learners(reports(100, 60, members), {Ordinal(2)}, example.task_set()) == Room(50, 120)
    assert room_for_learners(reports(100, 60, members), {Ordinal(2)}, TopologyUnknown("?")) == Room(50, 120)


@pytest.mark.parametrize(("state", "free", "ordinal"), [(None, 1, 2), (1, None, 0)])
def test_what_is_not_told_is_unknown(state: int | None, free: int | None, ordinal: int) -> None:
    assert room_for_learners(reports(state, free), {Ordinal(2)}, example.task_set()) == RoomUnknown(Ordinal(ordinal))


@pytest.mark.parametrize(
    ("state", "free", "reason", "is_told"),
    [
        pytest.param(100 * MEGA, 54 * MEGA, Reason.NoRoomForLearners, False, id="too little with a tenth to spare"),
        pytest.param(100 * MEGA, 55 * MEGA, Reason.AnnouncementPending, True, id="just enough"),
        pytest.param(None, None, Reason.AnnouncementPending, True, id="nobody knows"),
    ],
)
def test_nobody_is_told_to_leave_where_learners_do_not_fit(
    state: int | None, free: int | None, reason: Reason, *, is_told: bool
) -> None:
    agents = example.agents(BARE, state_bytes=state, free_bytes=free)
    readings = tuple(a_reading(BARE, at=at, rebalance=None) for at in (1, 6))
    decision = decide(replace(a_snapshot(), readings=readings, agents=agents), POLICY)
    assert told(decision) == ("Hold", reason.name)
    assert any(isinstance(step, Announce) for step in decision.plan) == is_told
    warned = [one.reason for one in decision.warnings]
    assert warned == ([Reason.DiskRoomUnknown] if state is None else [])
