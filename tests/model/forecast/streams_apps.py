"""Running applications whose brokers assign: a task table with the members of a streams group."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from streamapp.core.actions.standbys import Standbys
from streamapp.core.assignors.group import Task
from streamapp.core.assignors.sticky import BrokerRelease, StickySettings, StreamsMember, assign
from streamapp.core.facts.group import StreamsGroup
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.seeding import seeded_process_id
from streamapp.core.facts.snapshot import NOTHING_SEEN
from streamapp.core.status.streams_rows import UNCAPPED, StreamsMemberRow, StreamsRow
from streamapp.core.status.task_table import TaskTable
from streamapp.simulator.forecast.basis import Basis, Given, Known, basis
from streamapp.simulator.forecast.outcome import Outcome, outcome
from streamapp.simulator.forecast.running import Running, running
from streamapp.simulator.forecast.times import Spread
from tests.model.forecast.apps import RECORDS, UID, a_table

Layout = Mapping[int, Sequence[tuple[str, str]]]
"""`{0: [("02", "1"), ("4", "3")]}`: pod 0 has two threads; the first runs 0_0 and 0_2, and has a copy of 0_1."""
CAPPED = timedelta(milliseconds=300)
PACE = Spread(100_000, 100_000, 100_000)


def a_streams_table(
    layout: Layout,
    *,
    standbys: int | None = 1,
    most: int | None = None,
    release: str | None = "4.2",
    assignor: str | None = None,
    heartbeat: timedelta = UNCAPPED,
    interval: timedelta | None = None,
    records: int | None = RECORDS,
) -> TaskTable:
    """The table of a settled group; `most` are the standbys that the operator raises it to."""
    threads = max(len(one) for one in layout.values())
    whole = {
        pod: ("".join(active for active, _ in one), "".join(copies for _, copies in one)) for pod, one in layout.items()
    }
    table = a_table(whole, limit=100, records=records, threads=threads)
    told = (
        None if standbys is None else Standbys(now=standbys, at_rest=standbys, most=standbys if most is None else most)
    )
    group = StreamsGroup(
        epoch=7, assignment_epoch=7, broker_release=release, assignor=assignor, assignment_interval=interval
    )
    members = tuple(
        StreamsMemberRow(
            id=f"member-{pod}-{number}", ordinal=Ordinal(pod), actives=tasks(actives), standbys=tasks(copies)
        )
        for pod, one in layout.items()
        for number, (actives, copies) in enumerate(one)
    )
    return replace(table, streams=StreamsRow(group=group, members=members, standbys=told, heartbeat=heartbeat))


def tasks(digits: str) -> frozenset[TaskId]:
    """`024`: 0_0, 0_2 and 0_4."""
    return frozenset(TaskId(0, int(digit)) for digit in digits)


def on_rests(table: TaskTable, to: int, given: Given | None = None) -> tuple[Running, Basis]:
    """The application, and what a prediction of it rests on."""
    app = running(table, len({row.ordinal for row in table.processes}), to, UID)
    return app, basis(app, NOTHING_SEEN, Known(is_on_demand=False), given or Given())


def predicted(table: TaskTable, to: int, given: Given | None = None) -> Outcome:
    """The outcome of a change, at one restore rate."""
    app, rests_on = on_rests(table, to, given)
    return outcome(app, to, rests_on.settings, PACE, rests_on.pauses, rests_on.gap)


def dealt(
    count: int, pods: Sequence[int], standbys: int, names: str, release: BrokerRelease = BrokerRelease.FROM_4_2
) -> Layout:
    """A layout that the broker itself reached: pods of so many threads join in turn; ties fall by `names`."""
    members: dict[tuple[int, int], StreamsMember] = {}
    settings = StickySettings(release=release, num_standby_replicas=standbys)
    universe = [Task(TaskId(0, number)) for number in range(count)]
    for pod, threads in enumerate(pods):
        for thread in range(threads):
            process = str(seeded_process_id(names, Ordinal(pod)))
            members[pod, thread] = StreamsMember(id=f"{names}-{pod}-{thread}", process=process)
        given = assign(universe, members.values(), settings)
        members = {
            at: replace(one, actives=given[one.id].actives, standbys=given[one.id].standbys)
            for at, one in members.items()
        }
    return {
        pod: [
            (digits(members[pod, thread].actives), digits(members[pod, thread].standbys)) for thread in range(threads)
        ]
        for pod, threads in enumerate(pods)
    }


def digits(found: frozenset[TaskId]) -> str:
    """The other way round."""
    return "".join(str(task.partition) for task in sorted(found))
