"""Makes lines of the flight record when an autoscaler of the application appears, changes or goes.

The operator lists autoscalers about every half minute; a line has the time of the pass that saw the change.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from streamapp.core.facts.autoscalers import Autoscaler, ReplicaWriters, ReplicaWritersUnknown
from streamapp.flightrecord.lines import Head
from streamapp.flightrecord.schema import AutoscalerLine


@dataclass(slots=True)
class AutoscalerLog:
    """The last line of each autoscaler. While autoscalers are unknown, the log adds and drops nothing."""

    _last: dict[tuple[str, str], AutoscalerLine] = field(default_factory=dict)
    """By name and kind of its target."""

    def lines(
        self, head: Head, at: datetime, writers: ReplicaWriters | ReplicaWritersUnknown
    ) -> Iterator[AutoscalerLine]:
        """Give the lines that are news, and remember them as written.

        An autoscaler that is gone gets a last line without numbers, in which it is not active.
        """
        if isinstance(writers, ReplicaWritersUnknown):
            return
        lines = [_line(head, at, autoscaler) for autoscaler in writers.autoscalers]
        live = {(line.name, line.aims_at): line for line in lines}
        before, self._last = self._last, live
        for key, line in live.items():
            last = before.get(key)
            if last is None or line.model_copy(update={"ts": last.ts}) != last:
                yield line
        for name, aims_at in before.keys() - live.keys():
            yield AutoscalerLine(**head, seq=0, ts=at, name=name, aims_at=aims_at, is_active=False)


def _line(head: Head, at: datetime, autoscaler: Autoscaler) -> AutoscalerLine:
    return AutoscalerLine(
        **head,
        seq=0,
        ts=at,
        name=autoscaler.name,
        aims_at=autoscaler.aim.value,
        min_replicas=autoscaler.least,
        max_replicas=autoscaler.most,
        current_replicas=autoscaler.current,
        desired_replicas=autoscaler.desired,
        is_active=autoscaler.is_active,
        cannot_act=autoscaler.hindrance,
        limited_by=autoscaler.limited_by,
        up_window_seconds=_seconds(autoscaler.up_window),
        down_window_seconds=_seconds(autoscaler.down_window),
    )


def _seconds(window: timedelta | None) -> float | None:
    return None if window is None else window.total_seconds()
