"""Has a decision that takes long made in a thread first, so that the passes of other applications go on meanwhile.

Of a large group of the streams protocol, what its brokers would do is played in many ways, for up to a minute. What was
played is remembered, so the same decision costs next to nothing afterwards. Called by `reconcile.reconciler` in each
pass; it decides nothing itself.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from streamapp.controller.apps.raise_watch import RaiseWatch
from streamapp.core.assignors.broker_moves import takes_long
from streamapp.core.decide import decide
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet

PATIENCE_SECONDS = 90.0
"""A pass waits no longer for one: a pass of 120 s counts as stuck, and the process is restarted for it."""


@dataclass(frozen=True, slots=True)
class LongPlays:
    """Those of all applications, one after the other."""

    _executor: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "plays"))

    async def are_over(self, snapshot: Snapshot, policy: ScalingPolicy, raises: RaiseWatch) -> bool:
        """Return when the decision takes no time any more; False as soon as a raise is received, or after a while.

        One that has begun goes on in its thread; the next pass asks again. A tenant can have many groups that take
        long, and each of them waits for its turn.
        """
        group = None if snapshot.latest is None else snapshot.latest.group
        if not isinstance(group, GroupDescription) or not isinstance(snapshot.task_set, TaskSet):
            return True
        if not takes_long(group, snapshot.task_set):
            return True
        playing = asyncio.get_running_loop().run_in_executor(self._executor, decide, snapshot, policy)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                if not await raises.comes_after(playing):
                    return False
        except TimeoutError:
            return False
        finally:
            playing.cancel()  # no more than one that has not begun
        playing.result()
        return True
