"""What befalls an application while no container of it ends or begins, so that Kubernetes shows nothing of it.

Only the group tells of it, or the agents; and where neither does, nobody can know before the next join.
"""

import asyncio
from collections.abc import Callable, Mapping

from tests.prove.group import Group, Run

COMES_BACK_AFTER = 3.0
"""Seconds from the end of a thread's member until the thread, or the one in its place, joins again."""

ANEW = "-anew"
"""In the IDs of members of threads that began later than their container: a coordinator gives no ID twice."""


class SilentEvents:
    """Those of one StreamApp."""

    def __init__(self, group: Group, loop: asyncio.AbstractEventLoop) -> None:
        self._group, self._loop = group, loop

    def deeds(self) -> Mapping[str, Callable[[int], object]]:
        """What can happen, by the name that a story has for it: on an ordinal, or for so many seconds."""
        return {
            "copy-lost": self._lose_copies,
            "thread-replaced": self._replace_thread,
            "changelog-unseen": self._hide_changelogs,
        }

    def _lose_copies(self, ordinal: int) -> None:
        """A task that was closed uncleanly wipes its store: each copy there begins anew, in the same member."""
        self._group.advance()
        for member in self._group.listed(alive=True):
            assert member.run is not None
            if member.run.ordinal == ordinal:
                self._group.truth.volumes[member.run.volume].update(dict.fromkeys(member.standby, 0.0))
                for task in member.standby:
                    self._group.lost_at[member.process_id, task] = self._loop.time()

    def _replace_thread(self, ordinal: int) -> None:
        """A thread has failed and is replaced, or was not polled in time: its member leaves, and another one comes.

        A static member does not leave; it comes back as who it was.
        """
        self._group.advance()
        for member in self._group.listed(alive=True):
            if member.run is not None and member.run.ordinal == ordinal:
                member.running.clear()
                thread = int((member.instance or "-0").rpartition("-")[2])
                self._loop.call_later(COMES_BACK_AFTER, self._join, member.run, thread)
                if member.instance is None:
                    self._group.leave(member.id)
                return

    def _hide_changelogs(self, seconds: int) -> None:
        """For so long, the brokers list no changelog; what members and agents say of their state goes on."""
        self._group.hides_changelogs = True
        self._loop.call_later(seconds, setattr, self._group, "hides_changelogs", False)

    def _join(self, run: Run, thread: int) -> None:
        if run.is_alive:
            self._group.join_thread(run, thread, ANEW)
