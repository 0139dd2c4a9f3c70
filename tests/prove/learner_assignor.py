"""Who gets which task where all pods run the learner task assignor: tasks of who leaves move behind ready learners.

By processes; inside one, a thread keeps what it has, and the least loaded takes what is new. The leader goes by what
its own agent has heard: unknown, nobody, or these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamapp.core.facts.ids import ProcessId, TaskId
from tests.prove.assignor import Given

if TYPE_CHECKING:
    from tests.prove.group import Member

BUDGET = 4


@dataclass(slots=True)
class Dealt:
    """What came of it."""

    given: Mapping[str, Given]
    moved: int
    learning: int


def deal_on_demand(
    tasks: Sequence[TaskId],
    members: Sequence["Member"],
    named: frozenset[ProcessId],
    warm: float,
    *,
    is_unknown: bool,
) -> Dealt:
    """Assign the tasks to the members.

    Args:
        tasks: All of the group's.
        members: All of the group's.
        named: The processes that leave, as announced to the leader.
        warm: The position from which a copy is caught up.
        is_unknown: The leader has no announcement yet, so no task moves.
    """
    processes = sorted({member.process_id for member in members})
    staying = [one for one in processes if one not in named] or processes
    owner = {task: member for member in members for task in member.said.owned}
    at = {one: _positions(one, members) for one in processes}
    best = {task: max(staying, key=lambda one: at[one].get(task, -1.0)) for task in tasks}
    places = {task: owner[task].process_id if task in owner else best[task] for task in tasks}
    copies = {task: {member.process_id for member in members if task in member.standby} for task in tasks}
    learners = {} if is_unknown else _learners(places, copies, staying)
    ready = {task: one for task, one in learners.items() if at[one].get(task, -1.0) >= warm}
    busy = {one for task, one in learners.items() if task not in ready}
    moves = {task: one for task, one in ready.items() if one not in busy}
    given = {member.id: Given() for member in members}
    for task in tasks:
        before, place = owner.get(task), moves.get(task, places[task])
        if before is not None and before.process_id != place:
            _least(given, members, place).standby.add(task)  # revoked first; its new owner keeps its copy
        else:
            share = given[before.id] if before is not None else _least(given, members, place)
            share.active.add(task)
            if task in learners and learners[task] != place:
                _least(given, members, learners[task]).standby.add(task)
    return Dealt(given, len(moves), len(learners) - len(moves))


def _positions(process: ProcessId, members: Sequence["Member"]) -> Mapping[TaskId, float]:
    found: dict[TaskId, float] = {}
    for member in members:
        if member.process_id == process:
            found |= member.said.positions
            found |= dict.fromkeys(member.said.running, float("inf"))
    return found


def _learners(
    places: Mapping[TaskId, ProcessId], copies: Mapping[TaskId, set[ProcessId]], staying: Sequence[ProcessId]
) -> dict[TaskId, ProcessId]:
    load = {one: sum(1 for place in places.values() if place == one) for one in staying}
    found: dict[TaskId, ProcessId] = {}
    for task, place in sorted(places.items()):
        is_heavy = place in load and load[place] > min(load.values()) + 1
        if place in load and not is_heavy:
            continue
        to = min((one for one in staying if one != place), key=lambda one: (one not in copies[task], load[one], one))
        if is_heavy and load[to] + 1 >= load[place]:
            continue
        if len(found) < BUDGET or to in copies[task]:
            found[task] = to
            load[to] += 1
            if is_heavy:
                load[place] -= 1
    return found


def _least(given: Mapping[str, Given], members: Sequence["Member"], process: ProcessId) -> Given:
    own = [member.id for member in members if member.process_id == process]
    return given[min(own, key=lambda one: (len(given[one].active) + len(given[one].standby), one))]
