"""The coordinator of a streams group, and the heartbeats of its members.

A member learns of anything at its own next heartbeat, every 5 s, and acknowledges what it had to give up with one at
once. A task that moves is given to its new process only after that. The coordinator assigns at the first heartbeat of
whomever after members or the group's configuration changed, as brokers 4.2 do.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from streamapp.core.facts.ids import ProcessId
from tests.prove.group import NOT_COMMITTED, SESSION_TIMEOUT, Group, Member, Run
from tests.prove.streams.broker_assignor import deal_by_broker
from tests.prove.streams.truth import Placed, Share, StreamsTruth

if TYPE_CHECKING:
    from tests.prove.calls import Process

HEARTBEAT = 5.0
"""Brokers allow no shorter one."""
LEAVE_IS_LOST = 0.1
"""Share of the processes asked to end whose last heartbeat never arrives."""
FOREIGN_DEFAULT = 9
"""In a story: another hand removes the group's own value."""


class StreamsGroup(Group):
    """The coordinator with its timers."""

    truth: StreamsTruth

    def __init__(self, truth: StreamsTruth, loop: asyncio.AbstractEventLoop, chance: random.Random) -> None:
        super().__init__(truth, loop, chance)
        self._order = f"order {chance.random()}"
        self._beats: dict[str, int] = {}
        self.set_by_hand: list[Callable[[int | None], None]] = []
        """Told of a value that somebody else than the operator set, before it is there."""
        self.set_by_operator: list[Callable[[Process, int | None], None]] = []
        """Told of a value that the operator writes, before it is there."""
        self.read_by_operator: list[Callable[[Process], None]] = []
        """Told that an operator's process reads the value."""
        self.is_undescribed = False
        """Its brokers say which protocol it has and nothing else, as those without the API that describes it."""
        self.not_described_to: list[Callable[[Process], None]] = []
        """Told that an operator's process has heard so."""
        self.assigned: list[Callable[[frozenset[str], Mapping[str, Share]], None]] = []
        """Told of each new assignment: who is listed, and the targets before."""
        for member in truth.members.values():
            self._beat_after(member.id, chance.uniform(0.0, HEARTBEAT))

    def deeds(self) -> Mapping[str, Callable[[int], object]]:
        """Another hand sets the group's standbys, or with 9 removes the value; for so long, nobody describes it."""
        return {
            "set-standbys": lambda which: self.set_foreign(None if which == FOREIGN_DEFAULT else which),
            "group-undescribed": self._hide,
        }

    def _hide(self, seconds: int) -> None:
        self.is_undescribed = True
        self._loop.call_later(seconds, setattr, self, "is_undescribed", False)

    def set_foreign(self, standbys: int | None) -> None:
        """A user or another tool sets it."""
        for tell in self.set_by_hand:
            tell(standbys)
        self.configure(standbys)

    def configure(self, standbys: int | None) -> None:
        """A value arrives at the controller of the cluster; the brokers know it a little later."""
        self.truth.setting = standbys
        self._loop.call_later(self._chance.uniform(0.005, 0.3), self._show_setting)

    def _show_setting(self) -> None:
        """Brokers know values in the order in which they arrived: never an older one after a newer one."""
        self.truth.shown = self.truth.setting

    # Who comes and goes.

    def join_thread(self, run: Run, thread: int, suffix: str = "") -> None:  # noqa: ARG002 (of static members)
        """One thread of a container joins, as a member that nobody has seen before."""
        truth = self.truth
        self._numbers += 1
        identity = f"{truth.application_id}-{run.ordinal}-{run.id.rpartition('/')[2]}-{self._numbers}{suffix}"
        truth.members[identity] = Member(identity, run, run.host, run.process_id, has_assignment=True)
        truth.placed[identity] = Placed()
        truth.generation += 1
        self._beat(identity, self._beats.setdefault(identity, 0))

    def ended(self, run: Run) -> None:
        """Whoever was asked to end leaves, mostly; of the others, the sessions go on."""
        is_asked = run.reason == "Completed" and self._chance.random() >= LEAVE_IS_LOST
        for member in [one for one in self.truth.members.values() if one.run is run]:
            least, most = (0.0, 0.3) if is_asked else (SESSION_TIMEOUT - HEARTBEAT, SESSION_TIMEOUT)
            self._loop.call_later(self._chance.uniform(least, most), self.leave, member.id)

    def leave(self, identity: str) -> None:
        """It left, its session timed out, or somebody sent its last heartbeat."""
        truth = self.truth
        if identity not in truth.members:
            return
        self.advance()
        del truth.members[identity], truth.placed[identity]
        truth.targets.pop(identity, None)
        truth.generation += 1
        truth.state = truth.state_now()

    def trigger_rebalance(self, process_id: ProcessId, host: str, *, stays: bool) -> bool:
        """Nobody joins a streams group to find something out."""
        raise AssertionError(f"a probe member like {process_id} at {host} joins, stays: {stays}")

    # Heartbeats.

    def _beat_after(self, identity: str, seconds: float) -> None:
        """The next one, in place of the one that was due."""
        number = self._beats[identity] = self._beats.get(identity, 0) + 1
        self._loop.call_later(seconds, self._beat, identity, number)

    def _beat(self, identity: str, number: int) -> None:
        member = self.truth.members.get(identity)
        if member is None or not member.is_alive or self._beats.get(identity) != number:
            return
        if self.is_behind:
            self._beat_after(identity, NOT_COMMITTED)
            return
        self.advance()
        self._assign_if_due()
        self._reconcile(member, self.truth.placed[identity])
        self.truth.state = self.truth.state_now()
        self._loop.call_later(self._chance.uniform(0.02, 0.3), self._take_up, identity)
        self._beat_after(identity, HEARTBEAT)

    def _assign_if_due(self) -> None:
        truth = self.truth
        standbys = truth.shown or 0
        if standbys != truth.used:
            truth.used = standbys
            truth.generation += 1
        if truth.assigned_epoch == truth.generation:
            return
        truth.assigned_epoch = truth.generation
        before, members = dict(truth.targets), list(truth.members.values())
        truth.targets = deal_by_broker(self.tasks, members, before, standbys, self._order)
        for told in self.assigned:
            told(frozenset(truth.members), before)
        for tell in self.completed:
            tell()

    def _reconcile(self, member: Member, placed: Placed) -> None:
        """Bring a member nearer to its target, as far as it and the others have given up what they had to."""
        truth = self.truth
        if truth.share(member) & placed.revoking:
            return
        placed.revoking = Share()
        target = truth.targets[member.id]
        kept = placed.given & target
        taken = truth.share(member) & (placed.given - kept)
        if taken:
            placed.given, placed.revoking = kept, taken
            return
        placed.given = kept | self._free(member, target - kept)
        placed.epoch = truth.assigned_epoch

    def _free(self, member: Member, wanted: Share) -> Share:
        """Of what a member shall have, what nobody else holds, and its own process not as the other kind."""
        others = {name: placed.held for name, placed in self.truth.placed.items()}
        active = {task: self.truth.members[name].process_id for name, one in others.items() for task in one.active}
        own = [held for name, held in others.items() if self.truth.members[name].process_id == member.process_id]
        copies = {task for held in own for task in held.standby}
        return Share(
            frozenset(task for task in wanted.active if task not in active and task not in copies),
            frozenset(task for task in wanted.standby if active.get(task) != member.process_id and task not in copies),
        )

    def _take_up(self, identity: str) -> None:
        """The process does what the answer told; whatever it gave up, it says so at once."""
        member = self.truth.members.get(identity)
        if member is None or not member.is_alive:
            return
        self.advance()
        placed = self.truth.placed[identity]
        member.active, member.standby = set(placed.given.active), set(placed.given.standby)
        member.running &= member.active
        if placed.revoking:
            self._beat_after(identity, self._chance.uniform(0.005, 0.05))
