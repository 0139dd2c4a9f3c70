"""Lines of the flight record about the autoscalers of an application: each when it comes, changes or goes.

Called by `changes`. They are listed every half minute or so, and a line has the time of the pass that saw it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from streamapp.core.facts import autoscalers as core
from streamapp.flightrecord.lines import Head
from streamapp.flightrecord.schema import Autoscaler


@dataclass(slots=True)
class DriversLog:
    """What was told of them; while they are not known, nothing is told and nothing forgotten."""

    _told: dict[tuple[str, str], Autoscaler] = field(default_factory=dict)
    """By name and what it aims at."""

    def lines(
        self, head: Head, at: datetime, drivers: core.ReplicaWriters | core.ReplicaWritersUnknown
    ) -> Iterator[Autoscaler]:
        """Give those that are news, and take them for written.

        One that is gone gets a last line without any number, in which it is not active.
        """
        if isinstance(drivers, core.ReplicaWritersUnknown):
            return
        live = {(one.name, one.aims_at): one for one in (_line(head, at, one) for one in drivers.autoscalers)}
        before, self._told = self._told, live
        for key, line in live.items():
            told = before.get(key)
            if told is None or line.model_copy(update={"ts": told.ts}) != told:
                yield line
        for name, aims_at in before.keys() - live.keys():
            yield Autoscaler(**head, seq=0, ts=at, name=name, aims_at=aims_at, is_active=False)


def _line(head: Head, at: datetime, one: core.Autoscaler) -> Autoscaler:
    return Autoscaler(
        **head,
        seq=0,
        ts=at,
        name=one.name,
        aims_at=one.aim.value,
        min_replicas=one.least,
        max_replicas=one.most,
        current_replicas=one.current,
        desired_replicas=one.desired,
        is_active=one.is_active,
    )
