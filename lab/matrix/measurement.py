"""Measures a trial when it is over: gaps in its three windows, and whether every input was counted."""

from collections.abc import Collection
from dataclasses import dataclass

from lab.matrix.applications import Application
from lab.matrix.cells import Launcher
from lab.matrix.trial_result import Gaps
from lab.meter.gaps import GapReport, Window
from lab.meter.measure import check_counts, measure_gaps
from lab.meter.word_count_gaps import measure_word_gaps

Counts = tuple[int | None, int | None]
"""Lost and doubled; None where the outputs do not tell."""


@dataclass(frozen=True)
class Moments:
    """Milliseconds since the epoch; broker and trial are on one machine and have one clock."""

    began: int
    announced: int
    stop: int
    """SIGTERM; until then the time of the drain lasts."""
    ended: int

    @property
    def windows(self) -> tuple[Window, Window, Window]:
        """Quiet time, the drain, and the stop with what follows it."""
        return (
            Window(self.began, self.announced),
            Window(self.announced, self.stop),
            Window(self.stop, self.ended),
        )


def gauge(bootstrap: str, application: Application, moments: Moments, moved: Collection[int]) -> tuple[Gaps, Counts]:
    """Read the topics and measure; `moved` are the partitions whose task changed its process. The load has ended."""
    names, windows = application.names, moments.windows
    topics = names.input_topic, names.output_topic
    counts: Counts = (None, None)
    if application.cell.launcher is Launcher.WORD_COUNT:
        reports = measure_word_gaps(bootstrap, *topics, windows)
    else:
        reports = [measure_gaps(bootstrap, *topics, window) for window in windows]
        checked = check_counts(bootstrap, *topics, exactly_once=False)
        counts = checked.lost + checked.undercounted, checked.doubled
    quiet, drain, stop = reports
    others = [row.partition for row in drain.partitions if row.partition not in moved]
    gaps = Gaps(
        *(_worst(quiet), _worst(drain, moved), _worst(drain, others), _worst(stop)),
        *({row.partition: row.seconds for row in report.partitions} for report in (drain, stop)),
    )
    return gaps, counts


def _worst(report: GapReport, among: Collection[int] | None = None) -> float | None:
    row = report.worst(among)
    return None if row is None else row.seconds
