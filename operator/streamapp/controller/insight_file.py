"""Keeps the insight of a mounted file at hand: what the pipeline learned, for the status alone.

Created by `process`; `reconcile.report` asks it. The file is not trusted. Insight that cannot be used is as good as
none: statuses then have no range, and nothing else changes.
"""

import asyncio
import os
import stat
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

import structlog

from streamapp.api.insight import MOST_BYTES, AppInsight, Insight, InsightRefusedError, parse
from streamapp.kube.client.kinds import Key

log = structlog.get_logger()

EVERY_SECONDS: Final = 60.0


class InsightFile:
    """The insight in one file; empty until it is read, and again once it cannot be used."""

    def __init__(self, path: str, cluster: str, now: Callable[[], datetime]) -> None:
        self._path = Path(path) if path else None
        self._cluster = cluster
        self._now = now
        self._insight: Insight | None = None
        self._problem = ""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to read, from within the event loop; nothing is read where no file is named."""
        if self._path is not None:
            self._task = asyncio.create_task(self._run(self._path), name="insight")

    async def close(self) -> None:
        """Read no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def of(self, key: Key, uid: str) -> AppInsight | None:
        """What was learned of this StreamApp; None unless it is known and still valid."""
        insight = self._insight
        if insight is None or insight.valid_until <= self._now():
            return None
        return insight.of(key.namespace, key.name, uid)

    async def _run(self, path: Path) -> None:
        while True:
            await self.read(path)
            await asyncio.sleep(EVERY_SECONDS)

    async def read(self, path: Path) -> None:
        """Read the file once; never raises."""
        try:
            self._insight = await asyncio.to_thread(_read, path, self._cluster, self._now())
            problem = ""
        except FileNotFoundError:
            self._insight, problem = None, ""  # the pipeline has not run yet
        except (InsightRefusedError, OSError) as error:
            self._insight, problem = None, str(error)
        except Exception as error:  # noqa: BLE001 (the file is anybody's, and the status does without it)
            self._insight, problem = None, repr(error)
        if problem and problem != self._problem:
            log.warning("insight not used", file=str(path), why=problem, next="run `streamapp-analytics run` again")
        self._problem = problem


def _read(path: Path, cluster: str, now: datetime) -> Insight:
    # A pipe without a writer must not hang the thread.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise InsightRefusedError("it is no regular file")
        return parse(file.read(MOST_BYTES + 1), cluster, now)
