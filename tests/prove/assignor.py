"""Who gets which task: as the stock assignor does it in outline, with standbys, cooperative.

Round-robin over the processes in the order of their IDs; a task stays where it is until a copy at its place has caught
up, and at most two copies are warmed up at a time. Inside a process, threads take turns, a probe member's included.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamapp.core.facts.ids import ProcessId, TaskId

if TYPE_CHECKING:
    from tests.prove.group import Member

WARMUPS = 2


@dataclass(slots=True)
class Given:
    """One member's share."""

    active: set[TaskId] = field(default_factory=set)
    standby: set[TaskId] = field(default_factory=set)


def deal(
    tasks: Sequence[TaskId], members: Sequence["Member"], end: float, limit: int, standbys: int
) -> tuple[Mapping[str, Given], bool, bool]:
    """Deal out.

    Returns:
        What each member gets; whether tasks are on their way, to be given in the next generation; whether copies are
        warmed up.
    """
    processes = sorted({member.process_id for member in members})
    threads = {each: sorted((m for m in members if m.process_id == each), key=lambda m: m.id) for each in processes}
    owner = {task: member for member in members for task in member.said.owned}
    given = {member.id: Given() for member in members}
    warmups, moves = 0, False
    for number, task in enumerate(tasks):
        target = processes[number % len(processes)]
        backups = {processes[(number + next_one) % len(processes)] for next_one in range(1, standbys + 1)}
        before = owner.get(task)
        place = _place(task, target, None if before is None else before.process_id, threads, end, limit)
        copies = set(backups)
        if place != target:
            copies |= {target} if warmups < WARMUPS else set()
            warmups += 1
        if place in backups and len(processes) > 1:
            copies |= {target}  # a standby there is anyway
        for copy in sorted(copies - {place}):
            given[threads[copy][number % len(threads[copy])].id].standby.add(task)
        if before is not None and before.process_id != place:
            moves = True  # revoked there first
            continue
        thread = _pick_active(threads[place], number, before)
        if before is not None and thread is not before:
            moves = True
            continue
        given[thread.id].active.add(task)
    return given, moves, warmups > 0


def _place(
    task: TaskId,
    target: ProcessId,
    before: ProcessId | None,
    threads: Mapping[ProcessId, Sequence["Member"]],
    end: float,
    limit: int,
) -> ProcessId:
    """The process that the task is active on next."""
    warm = [each for each, members in threads.items() if any(_is_warm(member, task, end, limit) for member in members)]
    if target in warm:
        return target
    if warm:
        return before if before in warm else warm[0]
    return max(threads, key=lambda each: (_furthest(threads[each], task), each == target))


def _is_warm(member: "Member", task: TaskId, end: float, limit: int) -> bool:
    if task in member.said.running:
        return True
    position = member.said.positions.get(task)
    return position is not None and end - position <= limit


def _furthest(members: Sequence["Member"], task: TaskId) -> int:
    return max(member.said.positions.get(task, 0) for member in members)


def _pick_active(members: Sequence["Member"], number: int, before: "Member | None") -> "Member":
    """The thread that has it keeps it; else threads take turns."""
    return before if before is not None and before in members else members[number % len(members)]
