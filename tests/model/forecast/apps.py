"""Running applications for forecasts: as the operator's task table shows them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.seeding import seeded_process_id
from streamapp.core.facts.snapshot import NOTHING_SEEN, Speeds
from streamapp.core.status.processes import ProcessRow
from streamapp.core.status.task_table import CopySeen, Owner, Role, TaskRow, TaskTable

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
UID = "5c1f0a52-model"
RECORDS = 100_000


def a_table(
    layout: Mapping[int, tuple[str, str]],
    *,
    records: int | None = RECORDS,
    speeds: Speeds = NOTHING_SEEN,
    limit: int = 10_000,
    unused: Mapping[int, Mapping[TaskId, int]] | None = None,
    **row: object,
) -> TaskTable:
    """Layouts as `{0: ("024", "1")}`: pod 0 runs 0_0, 0_2 and 0_4, and has a caught-up copy of 0_1."""
    owners = {int(digit): ordinal for ordinal, (actives, _) in layout.items() for digit in actives}
    holders = {ordinal: [int(digit) for digit in copies] for ordinal, (_, copies) in layout.items()}
    rows = tuple(_row(task, owner, holders, records) for task, owner in sorted(owners.items()))
    processes = tuple(a_process(ordinal, (unused or {}).get(ordinal, {}), **row) for ordinal in layout)
    return TaskTable(
        as_of=NOW,
        positions_as_of=NOW,
        highest=Ordinal(max(layout)),
        limit=limit,
        rows=rows,
        doubt="",
        processes=processes,
        speeds=speeds,
    )


def _row(task: int, owner: int, holders: Mapping[int, Sequence[int]], records: int | None) -> TaskRow:
    copies = [CopySeen(Ordinal(owner), Role.ACTIVE, 0, is_caught_up=True)]
    copies += [
        CopySeen(Ordinal(ordinal), Role.STANDBY, 0, is_caught_up=True)
        for ordinal, tasks in holders.items()
        if task in tasks
    ]
    return TaskRow(
        task=TaskId(0, task),
        is_stateful=True,
        owner=Owner(Ordinal(owner), f"member-{owner}"),
        activity=None,
        copies=tuple(sorted(copies, key=lambda copy: copy.ordinal)),
        covered_on=None,
        records=records,
    )


def a_process(ordinal: int, lags: Mapping[TaskId, int] | None = None, **changes: object) -> ProcessRow:
    """A process of one thread."""
    fields = {"threads": 1, "lags": lags or {}, "newest_version": 11, **changes}
    return ProcessRow(ordinal=Ordinal(ordinal), process=seeded_process_id(UID, Ordinal(ordinal)), **fields)  # type: ignore[arg-type]
