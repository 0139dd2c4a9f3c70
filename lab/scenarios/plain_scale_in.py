"""A plain StatefulSet loses a pod under load: what users of a Kafka Streams application suffer today.

The application has a standby for every task and closes cleanly, and still the partitions of the pod that leaves give
no output until the broker's session timeout (45 s) has run out: the members that stay are not told before.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.meter.counts import CountReport
from lab.meter.gaps import GapReport
from lab.meter.table import MeasuredMove
from lab.scenarios import demo_application
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.group import GroupReader, Ownership
from lab.scenarios.observed_app import count_report, gap_report, wait_for_outputs
from lab.terminal import step

PARTITIONS = 6
BASELINE_SECONDS = 15.0
# Longer than the session timeout by what a cold and busy machine needs to assign and restore.
RECOVERY_SECONDS = 180.0
# After the group is stable the standbys read on; without this, some would still be cold when the pod leaves.
SETTLE_SECONDS = 10.0


@dataclass(frozen=True)
class ScaleIn:
    """What one scale-in did."""

    before: GapReport
    """The same partitions in quiet time, just before."""
    during: GapReport
    """From the write of the scale subresource until all partitions answer again."""
    moved: dict[int, MeasuredMove]
    """Partitions that changed their owner."""

    @classmethod
    def between(cls, before: GapReport, during: GapReport, old: Ownership, new: Ownership) -> "ScaleIn":
        """Say which partitions changed their owner between two readings of the group."""
        moved = {
            number: MeasuredMove(owner, new.owners.get(number, "nobody"))
            for number, owner in old.owners.items()
            if new.owners.get(number) != owner
        }
        return cls(before, during, moved)

    @property
    def worst_moved(self) -> float | None:
        """Longest gap of a partition that moved, in seconds; None if that is unknown."""
        return _worst(self.during, self.moved)

    @property
    def worst_untouched(self) -> float | None:
        """Longest gap of a partition that stayed where it was, in seconds; None if that is unknown."""
        return _worst(self.during, [row.partition for row in self.during.partitions if row.partition not in self.moved])

    def to_json(self) -> dict[str, Any]:
        """Give the figures for a file."""
        return {
            "before": self.before.to_json(),
            "during": self.during.to_json(),
            "moved": {number: asdict(move) for number, move in self.moved.items()},
        }


@dataclass(frozen=True)
class ScaleInResult:
    """All scale-ins of a run and the final count check."""

    scale_ins: tuple[ScaleIn, ...]
    counts: CountReport


class PlainScaleIn:
    """Plays the scenario in a session of a cluster that is up."""

    def __init__(self, session: Session, application: DemoApplication) -> None:
        self._kubectl = Kubectl(session)
        self._bootstrap = session.environment["KAFKA_BOOTSTRAP"]
        self._application = application
        self._group = GroupReader(self._bootstrap, self._kubectl, application)

    def run(self, before: int = 3, after: int = 2, repeat: int = 1) -> ScaleInResult:
        """Deploy, preload, load, then scale in `repeat` times; give the gaps and the counts."""
        self._deploy(before)
        scale_ins = []
        for turn in range(repeat):
            if turn:
                with step(f"back to {before} pods"):
                    demo_application.scale(self._kubectl, self._application, before)
                    self.wait_for_members(before)
                    time.sleep(SETTLE_SECONDS)
            scale_ins.append(self.scale_in(before, after))
        with step("stop the load and check every count"):
            demo_application.stop_load(self._kubectl, self._application)
            counts = count_report(self._bootstrap, self._application)
        return ScaleInResult(tuple(scale_ins), counts)

    def start(self, replicas: int) -> None:
        """Deploy the StatefulSet and wait until its pods run."""
        demo_application.start(self._kubectl, self._application, replicas)

    def start_load(self) -> None:
        """Start the load, wait for its first record, and let the standbys catch up."""
        last_preloaded = self._clock()
        demo_application.start_load(self._kubectl, self._application)
        wait_until("first record of the load", lambda: self._clock() > last_preloaded, RECOVERY_SECONDS)
        time.sleep(SETTLE_SECONDS)

    def scale_in(self, before: int, after: int) -> ScaleIn:
        """Measure quiet time, then scale in, and wait until every partition answers again."""
        with step(f"measure {BASELINE_SECONDS:.0f} s of quiet time"):
            quiet = self._clock()
            time.sleep(BASELINE_SECONDS)
            old = self._group.ownership()
        with step(f"plain StatefulSet: {before} → {after}, wait until every partition answers (about 50 s)"):
            began = self._clock()
            demo_application.scale(self._kubectl, self._application, after)
            self.wait_for_members(after)
            self.wait_for_outputs()
            time.sleep(2)
            ended = self._clock()
            new = self._group.ownership()
        return ScaleIn.between(self._gaps(quiet, began), self._gaps(began, ended), old, new)

    def wait_for_members(self, count: int) -> None:
        """Wait until so many members share all partitions in a stable group."""

        def settled() -> bool:
            now = self._group.ownership()
            return now.stable and now.members == count and len(set(now.owners.values())) == count

        wait_until(f"group of {count} members stable", settled, RECOVERY_SECONDS, interval_seconds=1)

    def wait_for_outputs(self) -> None:
        """Wait until every input has its output."""
        wait_for_outputs(self._bootstrap, self._application, RECOVERY_SECONDS)

    def _deploy(self, replicas: int) -> None:
        application, kubectl = self._application, self._kubectl
        with step("remove what an earlier run left"):
            demo_application.remove(kubectl, self._bootstrap, application.namespace)
        with step(f"preload {application.records:,} keys"):
            demo_application.preload(kubectl, application)
        with step(f"start the application with {replicas} pods"):
            self.start(replicas)
            self.wait_for_members(replicas)
        with step("build the state: every preloaded record counted once"):
            self.wait_for_outputs()
        with step(f"start the load of {application.rate} records a second and let the standbys catch up"):
            self.start_load()

    def _clock(self) -> int:
        return self._group.clock_ms(PARTITIONS)

    def _gaps(self, start_ms: int, end_ms: int) -> GapReport:
        return gap_report(self._bootstrap, self._application, start_ms, end_ms)


def _worst(report: GapReport, among: Sequence[int] | dict[int, MeasuredMove]) -> float | None:
    row = report.worst(list(among))
    return row.seconds if row else None
