"""What a story came past: reasons, cells of the state table, and guarantees that could have broken in it.

A sweep that never comes past something says nothing of it, so `python -m tests.prove` ends with what was never visited.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from streamapp.controller.record.recorder import PassRecorder
from streamapp.core.actions.decision import Decision
from streamapp.core.facts.group import GroupReading, GroupState, GroupUnreadable
from streamapp.core.facts.hold_record import HoldRecord
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.reasons import Reason
from streamapp.flightrecord.changes import Look
from streamapp.kube.client.kinds import Key
from tests.prove.group import Group
from tests.support.state_table import GroupCondition, HoldState, LearnerState, WishState

GUARANTEES = {
    1: "a pod with tasks was removed or restarted",
    2: "a pod was removed or restarted in spite of a fault",
    3: "a raise was due, or a removal was written after another change by the user",
    4: "a pod was removed, or a claim vanished",
    5: "a process ID was recorded, or differed at a removal",
    6: "a status was written while desired and current replicas differed",
    7: "a member was evicted",
    8: "a removal was written",
    9: "standbys of a streams group were set, by the operator or by another hand",
}
"""What has to happen in a story for the guarantee to be at stake."""


class VisitRecorder(PassRecorder):
    """Stands where the flight record is written, and notes what was decided in which state."""

    def __init__(self, visited: set[str], group_of: Callable[[str], Group]) -> None:
        off = PassRecorder.off()
        super().__init__(off.name, ())
        self._visited, self._group_of = visited, group_of

    def record(self, key: Key, look: Look) -> None:
        """Note one pass."""
        super().record(key, look)
        self._visited.update(reasons_of(look.decision))
        self._visited.add(cell_of(look.snapshot, self._group_of(look.resource["spec"]["applicationId"])))


def reasons_of(decision: Decision) -> Iterator[str]:
    """The reason of a decision, and what convergence waits for."""
    yield f"reason {decision.reason.name}"
    if decision.convergence.waits_for is not None:
        yield f"reason {decision.convergence.waits_for.reason.name}"


def cell_of(snapshot: Snapshot, group: Group) -> str:
    """The cell of the state table that a pass was in; how far copies are is asked of the truth."""
    cell = (_wish(snapshot), _hold(snapshot), _learners(snapshot, group), _group(snapshot, group))
    return f"cell {' | '.join(part.value for part in cell)}"


def every_cell() -> Iterator[str]:
    """All of the table."""
    for cell in product(WishState, HoldState, LearnerState, GroupCondition):
        yield f"cell {' | '.join(part.value for part in cell)}"


def _wish(snapshot: Snapshot) -> WishState:
    app, statefulset = snapshot.app, snapshot.workload.statefulset
    flags = (
        (app.fault is not None, WishState.INVALID),
        (app.paused, WishState.PAUSED),
        (app.dry_run, WishState.DRY_RUN),
    )
    named = next((state for holds, state in flags if holds), None)
    if named is not None:
        return named
    desired, current = app.desired.replicas, 0 if statefulset is None else statefulset.replicas
    if desired == 0:
        return WishState.ZERO_FORBIDDEN
    return WishState.RAISE if desired > current else WishState.SAME if desired == current else WishState.LOWER


def _hold(snapshot: Snapshot) -> HoldState:
    statefulset = snapshot.workload.statefulset
    record = None if statefulset is None else statefulset.record
    if statefulset is None or not isinstance(record, HoldRecord):
        return HoldState.NONE
    if record.step is not None:
        return HoldState.STEP
    if record.hold is None:
        return HoldState.NONE
    return HoldState.OPEN if record.hold.granted == statefulset.replicas else HoldState.LEFT_OVER


def _learners(snapshot: Snapshot, group: Group) -> LearnerState:
    truth, members = group.truth, group.listed(alive=True)
    desired = snapshot.app.desired.replicas
    if truth.shape.on_demand:
        going = [member for member in members if member.run is not None and member.run.ordinal >= desired]
        is_empty = bool(going) and not any(member.active or member.standby for member in going)
        return LearnerState.DRAINED if is_empty else LearnerState.LEARNING
    if snapshot.latest is None or snapshot.latest.rebalance is None:
        return LearnerState.UNKNOWN
    lags = [
        truth.lag(member.run.volume, task) for member in members if member.run is not None for task in member.standby
    ]
    if not lags:
        return LearnerState.NONE
    return LearnerState.COVERED if max(lags) <= truth.shape.limit else LearnerState.CATCHING_UP


def _group(snapshot: Snapshot, group: Group) -> GroupCondition:
    latest: GroupReading | None = snapshot.latest
    if latest is None or isinstance(latest.group, GroupUnreadable):
        return GroupCondition.UNREACHABLE
    if latest.group.state is not GroupState.STABLE:
        return GroupCondition.REBALANCING
    if any(member.run is None for member in group.truth.members.values()):
        return GroupCondition.FOREIGN
    by_process = {(member.process_id, member.run.ordinal) for member in group.listed() if member.run is not None}
    is_doubled = len({process for process, _ in by_process}) < len(by_process)
    return GroupCondition.DOUBLED if is_doubled else GroupCondition.STABLE


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of a whole sweep: in how many stories each was visited."""

    stories: Mapping[str, int]

    def never(self, every: Iterable[str]) -> list[str]:
        """What was never visited."""
        return [one for one in every if one not in self.stories]

    def lines(self) -> Iterator[str]:
        """What to print at the end."""
        reasons = [f"reason {reason.name}" for reason in Reason]
        cells, missed = list(every_cell()), self.never(reasons)
        yield f"reasons visited: {len(reasons) - len(missed)} of {len(reasons)}; never:"
        yield "  " + ", ".join(one.removeprefix("reason ") for one in missed)
        yield f"cells of the table visited: {len(cells) - len(self.never(cells))} of {len(cells)}; never, by axis:"
        visited = [one.removeprefix("cell ").split(" | ") for one in self.stories if one.startswith("cell ")]
        for number, axis in enumerate((WishState, HoldState, LearnerState, GroupCondition)):
            of_axis = Counter(cell[number] for cell in visited)
            each = len(cells) // len(axis)
            yield "  " + ", ".join(f"{state.value}: {each - of_axis[state.value]} of {each}" for state in axis)
        yield "stories in which a guarantee was at stake:"
        for number, when in GUARANTEES.items():
            yield f"  {number}: {self.stories.get(f'guarantee {number}', 0):,} ({when})"
