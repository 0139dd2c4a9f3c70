"""A process that stands still as a whole: its tasks, its timers and its clockwork, and not its calls alone.

Whatever a process began runs in a context that names its gate. The loop holds back what is due behind a closed gate, in
its order, and what belongs to a dead process for ever. What the world does (servers, brokers, kubelets) runs in
contexts without a gate, and goes on.
"""

import asyncio
from collections.abc import Coroutine
from contextvars import Context, ContextVar
from typing import Any, TypeVar

from tests.prove.virtual_time import VirtualLoop

T = TypeVar("T")


class Gate:
    """Of one process."""

    def __init__(self) -> None:
        self.is_open = True
        self.is_over = False
        self.context = Context()
        self.context.run(_GATE.set, self)
        self.held: list[asyncio.Handle] = []
        """What was due while it was closed, or since its process is dead."""


_GATE: ContextVar[Gate | None] = ContextVar("gate", default=None)


class GatedLoop(VirtualLoop):
    """The virtual loop, for several processes."""

    def __init__(self) -> None:
        super().__init__()
        self._is_ending = False
        self._gates: set[Gate] = set()
        """Behind which something was held back."""
        self._outside: set[asyncio.Task[Any]] = set()
        """What the world does for processes; the loop itself remembers no task."""

    def _run_once(self) -> None:
        ready = self._ready
        self._wait()
        for _ in range(len(ready)):
            handle: Any = ready.popleft()  # its context has no name in the stubs
            if handle._cancelled:
                continue
            gate = handle._context.get(_GATE)
            if gate is None or (gate.is_open and not gate.is_over) or self._is_ending:
                handle._run()
            else:
                gate.held.append(handle)
                self._gates.add(gate)

    def end_processes(self) -> None:
        """Let even the dead run, so that their tasks can be cancelled."""
        self._is_ending = True
        for gate in self._gates:
            self.open(gate)

    def open(self, gate: Gate) -> None:
        """Let a process go on: first with what it was doing, then with all that was due meanwhile."""
        gate.is_open = True
        held, gate.held = gate.held, []
        self._ready.extend(held)

    async def outside(self, what: Coroutine[Any, Any, T]) -> T:
        """Have the world do something for a process; it is done also if nobody waits for it any more."""
        doing = self.create_task(what, context=Context())
        self._outside.add(doing)
        doing.add_done_callback(self._outside.discard, context=Context())
        return await asyncio.shield(doing)
