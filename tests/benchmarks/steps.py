"""Prints the steps of a benchmark that takes minutes, and how long the rest takes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

import click


@dataclass
class Steps:
    """Each step has an expected length; the time that it really takes shows how fast this machine is."""

    expected: float
    """Seconds that all steps together should take."""
    out: TextIO | None = None
    done: float = 0.0
    took: float = 0.0

    @contextmanager
    def step(self, name: str, expected: float) -> Iterator[None]:
        """Surround a step; `expected` is in seconds."""
        pace = self.took / self.done if self.done else 1.0
        left = max(0.0, self.expected - self.done) * pace
        click.echo(f"{name}; about {_minutes(left)} left", file=self.out)
        began = time.monotonic()
        yield
        self.done, self.took = self.done + expected, self.took + time.monotonic() - began


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
