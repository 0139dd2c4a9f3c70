"""What kube-state-metrics says of the report's CronJob.

A stand-in: its module is not in the registries from which everything else here is built. Names and labels are those of
its page on CronJobs; that they are still its own is not proven here.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from aiohttp import web

from tests.chart.rendering import NAMESPACE
from tests.support.listening import serving

CRON_JOB = "streamapp-operator-analytics"


@dataclass(slots=True)
class CronJob:
    """One CronJob; its times count back from now."""

    created_ago: timedelta = timedelta(days=30)
    succeeded_ago: timedelta | None = timedelta(hours=2)
    """None where no run ever succeeded."""
    is_suspended: bool = False

    def text(self) -> str:
        """Give the three metrics that the rule reads; the time of a success is left out where there was none."""
        now, labels = time.time(), f'{{namespace="{NAMESPACE}",cronjob="{CRON_JOB}"}}'
        values = {"created": now - self.created_ago.total_seconds(), "spec_suspend": float(self.is_suspended)}
        if self.succeeded_ago is not None:
            values["status_last_successful_time"] = now - self.succeeded_ago.total_seconds()
        return "".join(f"kube_cronjob_{name}{labels} {value}\n" for name, value in values.items())

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        """Serve them, and give the port."""

        async def show(_: web.Request) -> web.Response:
            return web.Response(text=self.text())

        app = web.Application()
        app.add_routes([web.get("/metrics", show)])
        async with serving(app) as port:
            yield port
