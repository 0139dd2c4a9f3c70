"""Which protocol a group has, and so which of the world's groups and ports stands for it."""

import asyncio
import random
from collections.abc import Callable
from datetime import datetime

from tests.prove.calls import PortedGroup, Process, Switchboard, Witness
from tests.prove.group import Group, GroupTruth, Shape
from tests.prove.streams.coordinator import StreamsGroup
from tests.prove.streams.ports import PortedStreamsGroup
from tests.prove.streams.truth import StreamsTruth


def a_truth(shape: Shape, application_id: str) -> GroupTruth:
    """A group without members."""
    if not shape.streams:
        return GroupTruth(shape, application_id)
    setting = shape.standbys or None
    return StreamsTruth(shape, application_id, setting=setting, shown=setting)


def a_group(truth: GroupTruth, loop: asyncio.AbstractEventLoop, chance: random.Random) -> Group:
    """Its coordinator."""
    return StreamsGroup(truth, loop, chance) if isinstance(truth, StreamsTruth) else Group(truth, loop, chance)


def a_port(
    group: Group, board: Switchboard, process: Process, witness: Witness, now: Callable[[], datetime]
) -> PortedGroup:
    """What a process of the operator has of it."""
    kind = PortedStreamsGroup if isinstance(group, StreamsGroup) else PortedGroup
    return kind(group, board, process, witness, now)
