"""A coordinator that fails over, and shows its group as it was until its high watermark has caught up.

Kafka's coordinators answer as of the high watermark of their partition. While that stands still no record is committed,
so no rebalance ends and no heartbeat of a streams group is answered. Then the group is shown as it is, at once.
"""

import asyncio
from collections import deque

from streamapp.controller.ports import Poll
from streamapp.core.facts.group import GroupDescription, GroupState, StandbySettingUnread, StreamsGroup
from tests.prove.broker import described
from tests.prove.group import Group
from tests.prove.streams.ports import described_streams
from tests.prove.streams.truth import StreamsTruth

KEPT = 8
"""States of the group that a new coordinator can show."""
BEFORE_ALL = 9
"""In a story: the group is shown as it was before anybody joined."""
FAILOVERS = (120, 101, 230, 960, 412, 160, 215)
"""In a story: a hundred times the states that the new coordinator is behind, and the seconds for which it is."""


class Failover:
    """What the coordinator of one group shows."""

    def __init__(self, group: Group, loop: asyncio.AbstractEventLoop) -> None:
        self._group, self._loop = group, loop
        self._states: deque[Poll] = deque(maxlen=KEPT)
        self._older: Poll | None = None
        self._number = 0
        group.shown = self._shown
        group.completed.append(lambda: self._remember(self._as_it_is()))

    def begin(self, which: int) -> None:
        """Another broker takes over; `which` as in `FAILOVERS`."""
        behind, seconds = divmod(which, 100)
        states = [state for state in self._states if state != self._as_it_is()]
        self._older = states[-min(max(behind, 1), len(states))] if states and behind < BEFORE_ALL else self._empty()
        self._number += 1
        self._group.coordinator, self._group.is_behind = self._number, True
        self._loop.call_later(seconds, self._catch_up, self._number)

    def _catch_up(self, number: int) -> None:
        if number == self._number:
            self._older, self._group.is_behind = None, False

    def _shown(self, poll: Poll) -> Poll:
        """Give what is shown in place of the truth."""
        if self._older is not None:
            return self._older
        self._remember(poll)
        return poll

    def _remember(self, poll: Poll) -> None:
        """Keep a state that was written: a classic group writes no rebalance that goes on."""
        group = poll.group
        is_written = isinstance(group, GroupDescription) and (
            group.streams is not None or group.state in {GroupState.STABLE, GroupState.EMPTY}
        )
        if is_written and not self._group.is_behind and (not self._states or self._states[-1] != poll):
            self._states.append(poll)

    def _as_it_is(self) -> Poll:
        truth = self._group.truth
        if isinstance(truth, StreamsTruth):
            return Poll(described_streams(truth, StandbySettingUnread("it was not asked yet")))
        return described(truth)

    def _empty(self) -> Poll:
        group = self._as_it_is().group
        is_streams = isinstance(group, GroupDescription) and group.streams is not None
        streams = StreamsGroup(epoch=0, assignment_epoch=0, broker_release=None) if is_streams else None
        return Poll(GroupDescription(GroupState.EMPTY, (), streams))
