"""What the task table has of a streams group: its members, its settings, and what the operator can raise."""

from dataclasses import replace
from datetime import timedelta

import pytest

from streamapp.api.http.build import table_from, tasks_told
from streamapp.api.http.messages import Tasks, read
from streamapp.core.actions.standbys import Standbys
from streamapp.core.doctor.subject import Subject
from streamapp.core.facts.agent_reports import AsideKind, AssignorInactive, HeartbeatCap
from streamapp.core.facts.group import Applied, Member, StandbySetting, Subscription
from streamapp.core.facts.hold_record import Epoch, HoldRecord, RaisedStandbys, RaiseState
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import LearnerSource
from streamapp.core.status.streams_rows import UNCAPPED, StreamsRow
from streamapp.core.status.task_table import TaskTable, task_table
from tests.builders import NOW, ago, description
from tests.core.doctor.subjects import a_patient, of_streams_protocol, with_agents
from tests.support import example

ASIDE = AssignorInactive(AsideKind.STREAMS_PROTOCOL, "")
WORDS = {"is_ours": False, "aside": ASIDE, "heartbeat_cap": HeartbeatCap()}
ONE = StandbySetting(1, is_set=True)


def table(subject: Subject) -> TaskTable:
    found = task_table(subject.snapshot, subject.policy)
    assert isinstance(found, TaskTable), found
    return found


def row(subject: Subject) -> StreamsRow:
    found = table(subject).streams
    assert found is not None
    return found


def an_app(
    setting: StandbySetting = ONE, *, source: LearnerSource = LearnerSource.ON_DEMAND, **words: object
) -> Subject:
    """With agents that report how much room there is."""
    sizes = {"state_bytes": 1_000, "free_bytes": 1_000_000}
    subject = with_agents(example.members(3), words={**WORDS, **sizes, **words}, policy={"source": source})
    return of_streams_protocol(subject, standbys=setting)


def test_a_classic_group_has_none() -> None:
    assert table(a_patient()).streams is None


def test_every_member_has_its_pod_and_its_target() -> None:
    found = row(of_streams_protocol(a_patient(), broker_release="4.4", assignment_interval=timedelta(seconds=1)))
    first = found.members[0]
    assert (first.id, first.ordinal) == ("wordcount-0-consumer", Ordinal(0))
    assert (first.actives, first.standbys) == (
        frozenset(map(example.task, (0, 1))),
        frozenset(map(example.task, (4, 5))),
    )
    assert (found.standbys, found.heartbeat, found.is_capped) == (None, UNCAPPED, False)
    assert found.group.broker_release == "4.4"


def test_a_member_that_no_pod_has_is_there_without_one() -> None:
    stranger = replace(
        example.member(0, active=()), id="stranger", client_host="10.9.9.9", subscription=another_process()
    )
    found = row(of_streams_protocol(a_patient((*example.members(3), stranger))))
    assert {one.id: one.ordinal for one in found.members}["stranger"] is None


def another_process() -> Subscription:
    said = example.member(0).subscription
    assert said is not None
    return replace(said, process_id=example.process_id(77))


def test_heartbeats_are_shortened_where_every_agent_can() -> None:
    assert row(an_app()).heartbeat == timedelta(milliseconds=300)
    assert row(an_app(heartbeat_cap=None)).heartbeat == UNCAPPED
    assert row(of_streams_protocol(a_patient())).heartbeat == UNCAPPED


def test_on_demand_standbys_can_be_raised_and_else_they_stay() -> None:
    assert row(an_app(StandbySetting(0, is_set=False))).standbys == Standbys(now=0, at_rest=0, most=2)
    assert row(an_app(source=LearnerSource.STANDBYS)).standbys == Standbys(now=1, at_rest=1, most=1)


def test_a_disk_without_room_bounds_what_can_be_raised() -> None:
    assert row(an_app(free_bytes=1)).standbys == Standbys(now=1, at_rest=1, most=1)
    assert row(an_app(state_bytes=None)).standbys == Standbys(now=1, at_rest=1, most=1)


@pytest.mark.parametrize(("is_second", "to", "at_rest"), [(False, 1, 0), (True, 2, 0)])
def test_a_raise_that_is_in_force_is_not_what_the_group_has_at_rest(is_second: bool, to: int, at_rest: int) -> None:
    raised = RaisedStandbys(
        before=None, instead_of=to - 1, is_second=is_second, to=to, at=ago(30), state=RaiseState.SEEN
    )
    subject = an_app(StandbySetting(to, is_set=True))
    workload = subject.snapshot.workload
    assert workload.statefulset is not None
    record = HoldRecord(epoch=Epoch(lease=0, counter=1), standbys=raised)
    held = replace(workload, statefulset=replace(workload.statefulset, record=record))
    found = row(replace(subject, snapshot=replace(subject.snapshot, workload=held)))
    assert found.standbys == Standbys(now=to, at_rest=at_rest, most=2)


def test_the_operators_answer_carries_all_of_it() -> None:
    subject = of_streams_protocol(
        an_app(), standbys=ONE, broker_release="4.4", assignor="sticky", assignment_interval=timedelta(seconds=1)
    )
    readings = tuple(
        replace(one, group=replace(description(one), members=tuple(map(with_offset, description(one).members))))
        for one in subject.snapshot.readings
    )
    made = table(replace(subject, snapshot=replace(subject.snapshot, readings=readings)))
    told = read(Tasks, tasks_told("demo", "wordcount", made, as_of=NOW).as_json())
    found = table_from(told).streams
    assert made.streams is not None
    assert found is not None
    assert made.streams.members[0].offsets == {example.task(4): 900}
    assert (found.members, found.standbys, found.heartbeat) == (
        made.streams.members,
        made.streams.standbys,
        made.streams.heartbeat,
    )
    group, there = found.group, made.streams.group
    assert (group.broker_release, group.assignor, group.assignment_interval) == (
        there.broker_release,
        there.assignor,
        there.assignment_interval,
    )


def with_offset(member: Member) -> Member:
    assert member.subscription is not None
    return replace(member, subscription=replace(member.subscription, offsets={example.task(4): Applied(900)}))
