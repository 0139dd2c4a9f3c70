"""A group of the streams protocol between the core's values and the operator's answers. Pure.

Called by `build`, in both directions.
"""

from datetime import timedelta

from streamapp.api.http.messages import StreamsMember, StreamsStandbys, StreamsTold
from streamapp.core.actions.standbys import Standbys
from streamapp.core.facts.group import StreamsGroup
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.status.streams_rows import StreamsMemberRow, StreamsRow

_MILLISECOND = timedelta(milliseconds=1)


def streams_told(row: StreamsRow) -> StreamsTold:
    """The row as it is answered."""
    interval, standbys = row.group.assignment_interval, row.standbys
    return StreamsTold(
        broker_release=row.group.broker_release,
        assignor=row.group.assignor,
        standbys=None
        if standbys is None
        else StreamsStandbys(now=standbys.now, at_rest=standbys.at_rest, most=standbys.most),
        assignment_interval_millis=None if interval is None else interval // _MILLISECOND,
        heartbeat_millis=row.heartbeat // _MILLISECOND,
        members=tuple(map(_member, row.members)),
    )


def streams_row_from(told: StreamsTold) -> StreamsRow:
    """The row that was answered; ValueError for names of tasks that are none. It has no epochs: nobody asks."""
    interval, standbys = told.assignment_interval_millis, told.standbys
    return StreamsRow(
        group=StreamsGroup(
            epoch=0,
            assignment_epoch=0,
            broker_release=told.broker_release,
            assignor=told.assignor,
            assignment_interval=None if interval is None else interval * _MILLISECOND,
        ),
        members=tuple(map(_member_row, told.members)),
        standbys=None if standbys is None else Standbys(now=standbys.now, at_rest=standbys.at_rest, most=standbys.most),
        heartbeat=told.heartbeat_millis * _MILLISECOND,
    )


def _member(row: StreamsMemberRow) -> StreamsMember:
    """One member; not validated, since a large application has thousands of tasks."""
    return StreamsMember.model_construct(
        member=row.id,
        ordinal=row.ordinal,
        active=tuple(map(str, sorted(row.actives))),
        standby=tuple(map(str, sorted(row.standbys))),
        offsets={str(task): offset for task, offset in sorted(row.offsets.items())},
    )


def _member_row(told: StreamsMember) -> StreamsMemberRow:
    return StreamsMemberRow(
        id=told.member,
        ordinal=None if told.ordinal is None else Ordinal(told.ordinal),
        actives=frozenset(map(TaskId.parse, told.active)),
        standbys=frozenset(map(TaskId.parse, told.standby)),
        offsets={TaskId.parse(task): offset for task, offset in told.offsets.items()},
    )
