"""The processes of the task table: what lies on their volumes, and what they report of themselves."""

from dataclasses import replace
from typing import Any

from streamapp.api.http.build import table_from, tasks_told
from streamapp.api.http.messages import Tasks, read
from streamapp.core.facts.group import Applied, Member
from streamapp.core.facts.snapshot import Speeds
from streamapp.core.status.processes import ProcessRow
from streamapp.core.status.task_table import TaskTable, task_table
from tests.core.doctor.subjects import a_patient, members, with_agents
from tests.support import example


def table_of(*group: Member, **snapshot: Any) -> TaskTable:
    subject = a_patient(group or members(), **snapshot)
    table = task_table(subject.snapshot, subject.policy)
    assert isinstance(table, TaskTable)
    return table


def unused(member: Member) -> Member:
    """The member has an old directory of task 0_5, too."""
    assert member.subscription is not None
    offsets = {**member.subscription.offsets, example.task(5): Applied(example.END - 700)}
    return replace(
        member, subscription=replace(member.subscription, offsets=offsets, newest_version=11, is_tagged=True)
    )


def test_unused_directories_and_standbys_have_their_lag() -> None:
    first, *others = members(standbys=False)
    row, *_ = table_of(unused(first), *others).processes
    assert row == ProcessRow(
        ordinal=row.ordinal,
        process=example.process_id(0),
        threads=1,
        lags={example.task(5): 700},
        newest_version=11,
        is_tagged=True,
    )


def test_agents_add_their_version_and_settings() -> None:
    subject = with_agents(settings={"kafka_version": "4.2.1"}, words={"standby_replicas": 1, "state_bytes": 5_000})
    table = task_table(subject.snapshot, subject.policy)
    assert isinstance(table, TaskTable)
    assert [(one.kafka_version, one.standby_replicas, one.state_bytes) for one in table.processes] == [
        ("4.2.1", 1, 5_000)
    ] * 3


def test_the_table_survives_the_way_over_http() -> None:
    speeds = Speeds(restore=(80_000.0,), pauses_up=(9.0,), pauses_down=(20.0, 21.0))
    table = table_of(*members(), speeds=speeds)
    assert table.speeds == speeds
    told = tasks_told("demo", "wordcount", table, as_of=example.NOW)
    assert table_from(read(Tasks, told.as_json())) == table
