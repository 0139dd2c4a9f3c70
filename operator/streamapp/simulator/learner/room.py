"""Finds the process with the most room for many tasks one after the other."""

from collections.abc import Sequence
from heapq import heapify, heapreplace

from streamapp.simulator.learner.draft import Draft


class Room:
    """The processes that stay, by room, while no load changes but that of the process that was found last.

    Asked for tasks of one weight and sub-topology in a row, it looks at all processes once.
    """

    def __init__(self, draft: Draft, loads: Sequence[int], *, is_aimed: bool) -> None:
        """`loads`: by process, kept by the caller; `is_aimed`: the caller also aims each task at what was found."""
        self._draft = draft
        self._loads = loads
        self._is_aimed = is_aimed
        self._kind: tuple[int, int] | None = None
        self._heap: list[tuple[int, int, int]] = []

    def find(self, task: int) -> int:
        """The process with the most room, as `Draft.roomiest`; the caller adds the task's weight to its load."""
        draft = self._draft
        weight, kind = draft.weight(task), (draft.weight(task), draft.tasks[task].id.subtopology)
        if kind != self._kind:
            self._kind = kind
            self._heap = [
                ((self._loads[at] + weight) * draft.scale[at], draft.alike(task, at), at) for at in draft.staying
            ]
            heapify(self._heap)
        load, alike, process = self._heap[0]
        heapreplace(self._heap, (load + weight * draft.scale[process], alike + self._is_aimed, process))
        return process
