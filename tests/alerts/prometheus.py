"""A real Prometheus on this machine: it scrapes as the chart's PodMonitor says, and evaluates the chart's rules.

Rules are rendered by Helm. Only their `for:` is shortened, and Prometheus scrapes and evaluates every second; every
expression is the one that users install.
"""

import asyncio
import functools
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from lab.build.cache import Cache
from lab.build.chart_tools import build_prometheus
from lab.matrix.processes import free_ports
from lab.settings import Settings
from tests.chart.rendering import NAMESPACE, Json, render

PENDING = "2s"
"""In place of each `for:`."""
NOT_DECIDED_SECONDS = 120
"""The least that the chart takes."""
VALUES: Json = {
    "monitoring": {
        **{part: {"create": "always"} for part in ("podMonitor", "dashboard")},
        "rules": {"create": "always", "notDecidedAfterSeconds": NOT_DECIDED_SECONDS},
    },
    "record": {"volume": {"existingClaim": "shared", "accessMode": "ReadWriteMany"}},
    "analytics": {"enabled": True, "tables": {"existingClaim": "tables"}},
}


@functools.cache
def programs() -> Path:
    """Give the folder with `prometheus` and `promtool`, built if need be."""
    settings = Settings.from_environment()
    return build_prometheus(settings.versions, Cache(settings.cache))


@functools.cache
def rules() -> tuple[Json, ...]:
    """Give the alerts as the chart has them on a cluster."""
    (group,) = render(VALUES).one("PrometheusRule")["spec"]["groups"]
    return tuple(group["rules"])


@functools.cache
def dashboard() -> Json:
    """Give the dashboard as the chart has it on a cluster."""
    found: Json = json.loads(render(VALUES).one("ConfigMap", "streamapp-operator-dashboard")["data"]["streamapps.json"])
    return found


class Prometheus:
    """One process, asked over HTTP."""

    def __init__(self, url: str, client: aiohttp.ClientSession) -> None:
        self._url, self._client = url, client

    async def get(self, path: str, **parameters: str) -> Any:
        """Give the `data` of an answer."""
        async with self._client.get(f"{self._url}/api/v1/{path}", params=parameters) as answer:
            said = await answer.json()
        assert said["status"] == "success", said
        return said["data"]

    async def query(self, expression: str) -> list[Json]:
        """Give the samples of an expression, now; a scalar has no labels."""
        found = await self.get("query", query=expression)
        if found["resultType"] == "scalar":
            return [{"metric": {}, "value": found["result"]}]
        samples: list[Json] = found["result"]
        return samples

    async def firing(self) -> list[Json]:
        """Give the alerts that fire: their labels, with the alert's name."""
        return [one["labels"] for one in (await self.get("alerts"))["alerts"] if one["state"] == "firing"]

    async def until(self, what: str, holds: Callable[[], Any], seconds: float) -> None:
        """Wait until something is so; `holds` gives something to await."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + seconds
        while not await holds():
            if loop.time() > ends_at:
                alerts = (await self.get("alerts"))["alerts"]
                targets = (await self.get("targets"))["activeTargets"]
                seen = [(one["scrapeUrl"], one["health"], one["lastError"]) for one in targets]
                raise AssertionError(f"{what}: not within {seconds:g} s; {alerts}, {seen}")
            await asyncio.sleep(0.3)


@asynccontextmanager
async def prometheus(folder: Path, ports: Mapping[str, int], others: Mapping[str, int]) -> AsyncIterator[Prometheus]:
    """Run Prometheus until the block ends.

    Args:
        folder: For its data, configuration and log.
        ports: Of the operator's processes, by the names of their pods.
        others: Of other targets, by the names of their jobs.
    """
    port = free_ports(1)[0]
    _write_configuration(folder, ports, others)
    places = (f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}")
    with (folder / "prometheus.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(programs() / "prometheus", f"--config.file={folder / 'prometheus.yaml'}", *places),
            stdout=log,
            stderr=log,
            cwd=folder,
        )
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as client:
            is_ready = await _is_ready(f"http://127.0.0.1:{port}", client)
            assert is_ready, f"Prometheus is not ready; see {folder / 'prometheus.log'}"
            yield Prometheus(f"http://127.0.0.1:{port}", client)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _write_configuration(folder: Path, ports: Mapping[str, int], others: Mapping[str, int]) -> None:
    short = [{**rule, "for": PENDING} for rule in rules()]
    groups = [{"name": "streamapp-operator", "interval": "1s", "rules": short}]
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    configuration = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [
            _operator_job(ports),
            *({"job_name": name, "static_configs": [{"targets": [_at(port)]}]} for name, port in others.items()),
        ],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration))


def _operator_job(ports: Mapping[str, int]) -> Json:
    """What the Prometheus operator makes of the chart's PodMonitor: its path, its labels, and those of each pod."""
    monitor = render(VALUES).one("PodMonitor")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    name = f"{NAMESPACE}/{monitor['metadata']['name']}"
    of_all = {"namespace": NAMESPACE, "container": "operator", "endpoint": endpoint["port"]}
    return {
        "job_name": name,
        "metrics_path": endpoint["path"],
        "honor_labels": endpoint["honorLabels"],
        "static_configs": [{"targets": [_at(port)], "labels": {**of_all, "pod": pod}} for pod, port in ports.items()],
    }


def _at(port: int) -> str:
    return f"127.0.0.1:{port}"


async def _is_ready(url: str, client: aiohttp.ClientSession) -> bool:
    """Wait for it, for half a minute at most."""
    for _ in range(300):
        try:
            async with client.get(f"{url}/-/ready") as answer:
                if answer.status == 200:
                    return True
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(0.1)
    return False
