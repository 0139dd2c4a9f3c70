"""How far a run is: bars at a terminal, plain lines elsewhere, nothing in tests. Also what each stage took."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TextIO

import click
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

POLL_SECONDS = 0.25


@dataclass
class Stages:
    """Keeps the seconds that each stage took, in order; shows nothing."""

    took: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Surround a stage; its name is for people."""
        began = time.monotonic()
        with self.shown(name):
            yield
        self.took[name] = self.took.get(name, 0.0) + time.monotonic() - began
        self.ended(name)

    @contextmanager
    def shown(self, name: str) -> Iterator[None]:  # noqa: ARG002 - subclasses show it
        """What is shown while a stage goes on."""
        yield

    def ended(self, name: str) -> None:
        """A stage is finished."""


@dataclass
class Lines(Stages):
    """One plain line for each finished stage."""

    out: TextIO | None = None

    def ended(self, name: str) -> None:
        """Print it."""
        click.echo(f"{name}: {self.took[name]:.1f} s", file=self.out)


@dataclass
class Bars(Stages):
    """A bar for each stage, fed with the tasks that Spark's status tracker knows."""

    spark: SparkSession | None = None
    console: Console | None = None

    @contextmanager
    def shown(self, name: str) -> Iterator[None]:
        """A bar."""
        columns = (
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description:<32}"),
            BarColumn(bar_width=28),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        done = Event()
        with Progress(*columns, console=self.console) as progress:
            task = progress.add_task(name, total=None)
            watcher = Thread(target=self._watch, args=(progress, task, done), daemon=True)
            watcher.start()
            try:
                yield
            finally:
                done.set()
                watcher.join()
            progress.update(task, total=1, completed=1)

    def _watch(self, progress: Progress, task: TaskID, done: Event) -> None:
        """Sum up the tasks of all stages seen since the beginning; those of finished ones stay counted."""
        seen: dict[int, tuple[int, int]] = {}
        while not done.wait(POLL_SECONDS):
            seen.update(self._running())
            if seen:
                total = sum(of for _, of in seen.values())
                gone = set(seen) - set(self._running())
                completed = sum(of if stage in gone else so_far for stage, (so_far, of) in seen.items())
                progress.update(task, total=total, completed=min(completed, total))

    def _running(self) -> dict[int, tuple[int, int]]:
        if self.spark is None:
            return {}
        tracker = self.spark.sparkContext.statusTracker()
        found = {}
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None:
                found[int(stage)] = (int(info.numCompletedTasks), int(info.numTasks))
        return found
