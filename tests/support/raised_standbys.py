"""Groups of the streams protocol whose standbys are raised, were raised, or could be, as snapshots of a decision."""

from dataclasses import replace
from typing import Any

from streamapp.core.actions.decision import (
    Decision,
    SetStandbys,
)
from streamapp.core.facts.agent_reports import AgentsSeen, AsideKind, AssignorInactive
from streamapp.core.facts.group import Member, StandbySetting, StandbySettingUnread
from streamapp.core.facts.hold_record import Epoch, HoldRecord, RaisedStandbys, RaiseState
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.reasons import Reason
from tests.builders import a_hold, a_snapshot, ago
from tests.support import example
from tests.support.streams import streams_group, streams_reading

POLICY = ScalingPolicy(agent=True, source=LearnerSource.ON_DEMAND)
BARE = example.members(3, standbys=False)
CROWDED = example.members(3)
SPREAD = (
    example.member(0, active=(0, 1), standby=(4,)),
    example.member(1, active=(2, 3), standby=(5,)),
    example.member(2, active=(4, 5), standby=(0, 1, 2, 3)),
)
DEFAULT = StandbySetting(0, is_set=False)
RAISED = RaisedStandbys(before=None, instead_of=0, to=1, at=ago(20), lease=0)
SEEN = replace(RAISED, state=RaiseState.SEEN)
FORMER = replace(RAISED, lease=None)
"""Raised by an operator that lost its Lease since, or one of a version that did not tell."""
RETURNED = replace(FORMER, state=RaiseState.RETURNED)
RETURNING = replace(RAISED, state=RaiseState.RETURNING)
FOREIGN = replace(RAISED, before=2, state=RaiseState.FOREIGN)
"""Another hand has set two."""
READ_AT = ago(1)
"""When the brokers were asked last."""
TWICE = replace(RAISED, instead_of=1, is_second=True, to=2)


def reports(members: tuple[Member, ...], **changes: Any) -> AgentsSeen:
    aside = AssignorInactive(AsideKind.STREAMS_PROTOCOL, "the broker assigns")
    room = {"state_bytes": 2_000, "free_bytes": 1_000_000, "sizes": dict.fromkeys(range(example.PARTITIONS), 1_000)}
    return example.agents(members, is_ours=False, aside=aside, **{**room, **changes})


def a_case(
    members: tuple[Member, ...] = BARE,
    setting: StandbySetting | StandbySettingUnread = DEFAULT,
    raised: RaisedStandbys | None = None,
    *,
    is_held: bool = True,
    agents: dict[str, Any] | None = None,
    **changes: Any,
) -> Snapshot:
    """A hold from three to two, or its end, with that setting at the brokers and that record."""
    group = replace(streams_group(), standbys=setting)
    hold = changes.pop("hold", a_hold()) if is_held else None
    record = HoldRecord(epoch=Epoch(lease=0, counter=1), hold=hold, standbys=raised)
    return a_snapshot(
        readings=tuple(streams_reading(members, seconds, group) for seconds in (1, 15)),
        agents=reports(members, **(agents or {})),
        desired=changes.pop("desired", 2 if is_held else 3),
        record=None if hold is None and raised is None else record,
        **changes,
    )


def written(decision: Decision) -> list[int | None]:
    return [step.replicas for step in decision.plan if isinstance(step, SetStandbys)]


def on_record(decision: Decision) -> RaisedStandbys | None:
    """What the record says when the plan is done, if the plan writes it or it stays."""
    return decision.record.standbys if isinstance(decision.record, HoldRecord) else None


def told_of_standbys(decision: Decision) -> list[str]:
    return [event.detail for event in decision.events if event.reason is Reason.StandbysRestored]
