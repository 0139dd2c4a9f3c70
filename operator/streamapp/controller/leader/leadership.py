"""Whether this process leads: every writer asks before it writes. With one replica the answer is always yes.

Asked by `reconcile.apply`, `reconcile.gather`, `http.probes` and the API client; implemented by
`leader.election.Elector` if there is a Lease.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn, Protocol

import structlog

from streamapp.kube.client.errors import KubeError

log = structlog.get_logger()


class NotLeadingError(KubeError):
    """Another replica can lead now: nothing was sent, and the process ends."""


class Leadership(Protocol):
    """One replica's part in the election."""

    @property
    def transitions(self) -> int:
        """How often the Lease has changed hands, as last seen; for a leader, the number of its own term."""

    @property
    def holder(self) -> str:
        """The leader, as last read; empty if there is none or the Lease was not read yet."""

    def leads(self) -> bool:
        """Whether no other replica can lead at this moment, by the monotonic clock."""

    def check(self) -> None:
        """Return if this process leads at this moment; else end it, and raise NotLeadingError where that is played."""

    async def confirm(self) -> None:
        """Ask the API server for the same; as `check`, or another KubeError where it gives no answer."""

    async def give_way(self, number: int) -> None:
        """Return if this process leads although one with this later number has written; else as `check`."""

    def blind(self) -> str:
        """Why this process does not know who leads, as a sentence; empty where it does."""

    async def stand(self) -> None:
        """Return when this process leads."""

    async def keep(self) -> None:
        """Go on leading; returns or raises only where that is over."""

    async def release(self) -> None:
        """Give it back, after everything that writes has ended; nothing where there is nothing to give."""


MOST_TRANSITIONS = 2**31
"""The status has no room for a larger number."""


@dataclass(frozen=True, slots=True)
class Alone:
    """There is no other replica, and no Lease."""

    transitions: int = 0
    """The number of this process, which no other has that ran before: it fences what that one wrote or sent."""
    holder: str = ""
    lost: Callable[[], object] = lambda: None
    """Ends the process."""

    def leads(self) -> bool:
        """Always."""
        return True

    def check(self) -> None:
        """Nothing to check."""

    async def confirm(self) -> None:
        """Nothing to confirm."""

    async def give_way(self, number: int) -> None:
        """End this process: it was replaced while it stood still or was cut off, and no Lease shows that."""
        log.error("a later process acts, this one ends", number=self.transitions, later=number)
        self.lost()
        raise NotLeadingError("hold record", f"process {number} has written it", "it goes on; this one ends")

    def blind(self) -> str:
        """Nothing to see."""
        return ""

    async def stand(self) -> None:
        """Lead at once."""

    async def keep(self) -> None:
        """Go on for ever."""
        await asyncio.Event().wait()

    async def release(self) -> None:
        """Nothing to give back."""


def without_lease(now: datetime) -> Alone:
    """Give the leadership of a process without a Lease.

    A process before it may live on where nobody can stop it, on a node that is cut off.

    Args:
        now: When it starts, which numbers it.
    """
    return Alone(transitions=int(now.timestamp()) % MOST_TRANSITIONS, lost=end_process)


def end_process() -> NoReturn:
    """End this process as it stands: nothing that waits in it is sent any more."""
    os._exit(1)


ALONE = Alone()
