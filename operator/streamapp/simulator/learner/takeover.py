"""Decides which planned moves happen in this round, and which copies learn for a later one: `Takeover`."""

from dataclasses import dataclass, field
from itertools import islice

from streamapp.simulator.learner.draft import Draft, Leaving


@dataclass(slots=True)
class Takeover:
    """The moves of one round; `make` decides them."""

    draft: Draft
    is_frozen: bool
    """Nothing moves."""
    learners: dict[int, bool] = field(default_factory=dict)
    """By task that learns at its target, whether it is ready."""
    is_pending: bool = False
    """Whether a part of the plan remains."""
    free: int = 0
    """How many more copies this round can start."""
    warm_in_millis: int | None = None
    """When the first process is warm for which a ready copy waits; None if no copy waits for that."""

    def make(self) -> None:
        """Move what is ready, and start learners within the limit."""
        draft = self.draft
        planned = self._planned()
        ready = [task for task in planned if draft.is_ready(task, draft.target[task])]
        waits: set[int] = set()
        # Copies that are ready and wait for others count: the limit is on copies that exist beside the standbys.
        self.free = max(0, self._limit() - len(ready))
        learning = list(islice((task for task in planned if not draft.is_ready(task, draft.target[task])), self.free))
        self.free -= len(learning)
        for task in learning:
            self.learners[task] = False
            if not draft.announcement.is_eager:
                waits.add(draft.target[task])
        for task in ready:
            cold = draft.processes[draft.target[task]].cold_millis
            if self.is_frozen or draft.target[task] in waits or cold:
                self.learners[task] = True
                if cold:
                    self.warm_in_millis = min(cold, self.warm_in_millis or cold)
            else:
                draft.active[task] = draft.target[task]
        self.is_pending = any(draft.active[task] != draft.target[task] for task in planned)

    def _planned(self) -> list[int]:
        """Learners that have begun come before others."""
        draft = self.draft
        planned = [
            task
            for task in range(len(draft.tasks))
            if draft.is_stateful(task) and draft.target[task] != draft.active[task]
        ]
        return sorted(
            planned,
            key=lambda task: (not draft.has_copy(task, draft.target[task]), draft.lag(task, draft.target[task])),
        )

    def _limit(self) -> int:
        settings = self.draft.settings
        is_set = self.draft.announcement.state is Leaving.SET
        return settings.leaving_learners if is_set else settings.balance_learners

    def is_learner(self, task: int, process: int) -> bool:
        """Whether the process gets a copy for a later move."""
        return task in self.learners and self.draft.target[task] == process
