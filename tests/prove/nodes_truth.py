"""The truth about the nodes: every container there ever was, what lies on the volumes, and how slow everybody is."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from streamapp.core.facts.ids import ProcessId
from tests.prove.group import Run
from tests.support.example import NOW

APPLICATION = "app"
"""The name of the application's container."""
SIDECAR = {"name": "a-proxy", "image": "proxy:1"}
"""By its name and its place it is the first container of its pod."""


@dataclass(slots=True)
class NodesTruth:
    """Everything but the timers; can be copied."""

    runs: dict[str, Run] = field(default_factory=dict)
    """Every container there ever was, by its ID."""
    process_ids: dict[int, ProcessId] = field(default_factory=dict)
    """What really lies on each ordinal's volume."""
    numbers: int = 0
    skew: float = 0.0
    """Seconds that the nodes' clocks are ahead."""
    start: float = 0.0
    """Seconds that an application needs before it joins the group, beside the usual."""
    stop: float = 2.4
    """Seconds that a container takes at most to end when it is asked to."""
    sync: float = 0.5
    """Seconds that the StatefulSet's controller takes at most to see a change."""
    refused_until: float = 0.0
    """Until when a quota lets no pod be made, by the loop's clock."""
    lost_nodes: dict[int, float] = field(default_factory=dict)
    """Ordinals whose pod cannot be made again before that time."""
    full: dict[int, str] = field(default_factory=dict)
    """Ordinals whose volume is full, and the size at which it is."""
    sidecar_ends: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """By the UID of a pod: when each container beside the application's began and ended, by the node's clock."""
    broken_pods: set[str] = field(default_factory=set)
    """The UIDs of the pods whose image never starts."""


def wall(loop: asyncio.AbstractEventLoop) -> datetime:
    """The API server's clock."""
    return NOW + timedelta(seconds=loop.time())


def ordinals_of(statefulset: Mapping[str, Any]) -> range:
    """The ordinals that a StatefulSet has pods for."""
    spec = statefulset["spec"]
    start = spec.get("ordinals", {}).get("start", 0)
    return range(start, start + spec["replicas"])
