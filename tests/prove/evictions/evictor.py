"""Who cordons, drains and evicts: `kubectl drain`, a cluster autoscaler, a descheduler."""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.kube.object_store import Request
from tests.prove.calls import Switchboard
from tests.prove.evictions.eviction_api import BUDGETS, OK, EvictionApi, left_out
from tests.prove.evictions.scheduler import Scheduler

AGAIN = 5.0
"""Seconds between two tries of `kubectl drain`."""
AT_ONCE = 0.001
"""Seconds from the write of a budget to an eviction that it lets pass."""
SECOND_WITHIN = 5.0
"""Seconds from an eviction at the end of a turn in which the next turn is used at once: no pod is back by then."""
SHORT = 30.0
"""Seconds of a class of drains, as notes count them."""


@dataclass(slots=True)
class Drain:
    """Nodes that are emptied, one after the other."""

    nodes: list[int]
    began: float
    """When the first of them that is left was its turn."""
    pods: int = 1
    """The most that were on cordoned nodes since then: on demand, each waits for the turns of the others."""


class Evictor:
    """All drains of a story."""

    def __init__(
        self,
        scheduler: Scheduler,
        api: EvictionApi,
        loop: asyncio.AbstractEventLoop,
        board: Switchboard,
        notes: Counter[str],
    ) -> None:
        self._scheduler, self._api, self._loop, self._board, self._notes = scheduler, api, loop, board, notes
        self.drains: list[Drain] = []
        """Those that have not ended."""
        self.named: Callable[[int], tuple[str, str]] = lambda _: ("", "")
        """Gives namespace and name of the pod of an ordinal."""
        self._is_striking = False
        """Whether a pod was just evicted at the end of its turn, so that whoever has the next turn is evicted, too."""

    def deeds(self) -> Mapping[str, Callable[[int], object]]:
        """What can happen, by the name that a story has for it."""
        return {
            "cordon": lambda number: self._scheduler.set_unschedulable(number, is_cordoned=True),
            "uncordon": self._uncordon,
            "drain": lambda number: self._drain([number]),
            "drain-in-turn": lambda digits: self._drain([int(digit) for digit in reversed(str(digits))]),
            "evict": lambda ordinal: self._evict(*self.named(ordinal)),
            "evict-at-turns": self._evict_at_turns,
        }

    def _evict_at_turns(self, _: int) -> None:
        """Evict the pod whose turn is taken away next, right before that; and then whoever has the next turn at once.

        Who drains nodes asks at moments of his own, so these are possible, too.
        """
        self._board.writing = self._before_write

    def _before_write(self, request: Request) -> None:
        if request.plural != BUDGETS:
            return
        before = left_out(self._api.budget(request.namespace, request.name))
        after = left_out({"spec": request.body["spec"]})
        if before and before != after and not self._is_striking:
            self._is_striking = True
            self._loop.call_later(SECOND_WITHIN, self._strike_no_more)
            self._evict(request.namespace, before)
        if after and before != after and self._is_striking:
            self._loop.call_later(AT_ONCE, self._evict, request.namespace, after)

    def _strike_no_more(self) -> None:
        self._board.writing, self._is_striking = (lambda _: None), False

    def _uncordon(self, number: int) -> None:
        """Whoever drained the node gives up."""
        for one in self.drains:
            one.nodes = [other for other in one.nodes if other != number]
        self._scheduler.set_unschedulable(number, is_cordoned=False)

    def _drain(self, numbers: Sequence[int]) -> None:
        """Cordon all, then empty one after the other."""
        for number in numbers:
            self._scheduler.set_unschedulable(number, is_cordoned=True)
        drain = Drain([*numbers], self._loop.time())
        self.drains.append(drain)
        self._loop.call_later(0.05, self._try, drain)

    def _try(self, drain: Drain) -> None:
        while drain.nodes:
            pods = self._scheduler.pods_on(f"node-{drain.nodes[0]}")
            if pods:
                break
            seconds = SHORT * math.ceil((self._loop.time() - drain.began) / SHORT)
            self._notes[f"drains within {seconds:g} s"] += 1
            self._board.tell(f"node-{drain.nodes[0]} is empty after {self._loop.time() - drain.began:.1f} s")
            drain.nodes, drain.began, drain.pods = drain.nodes[1:], self._loop.time(), 1
        if not drain.nodes:
            self.drains.remove(drain)
            return
        drain.pods = max(drain.pods, self._scheduler.drained_pods)
        for pod in pods:
            if "deletionTimestamp" not in pod["metadata"]:
                self._evict(pod["metadata"]["namespace"], pod["metadata"]["name"])
        # Where a pod ends, kubectl looks each second; it asks for evictions again every 5 s.
        is_ending = all(
            "deletionTimestamp" in pod["metadata"] for pod in self._scheduler.pods_on(f"node-{drain.nodes[0]}")
        )
        self._loop.call_later(1.0 if is_ending else AGAIN, self._try, drain)

    def _evict(self, namespace: str, name: str) -> None:
        status, why = self._api.evict(namespace, name)
        self._notes["pod evictions" if status == OK else "refused pod evictions"] += 1
        self._board.tell(f"eviction of {name}: {status}, {why}")
