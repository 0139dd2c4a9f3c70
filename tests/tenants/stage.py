"""A stage: one real process of the operator, one application that must not suffer, and tenants who wish it ill.

The process is `python -m streamapp` with kopf, against the fake API server; brokers and agents of the tenants are real
sockets of the test. What a tenant costs is counted, so a busy machine does not change it: memory at its highest, which
the kernel knows, connections, and the words with which the operator refused to read on.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controller.doubles.bench import NAME, a_stream_app
from tests.controller.doubles.fake_pods import NAMESPACE
from tests.controller.leader.processes import Replica, Replicas, replicas

Json = dict[str, Any]
VICTIM = NAME
MOST_MIB = 300
"""Of the operator's process, whatever a tenant does: three quarters of the chart's limit."""


@dataclass(slots=True)
class Stage:
    """One operator and its applications."""

    them: Replicas
    operator: Replica

    def add(self, name: str, **spec: Any) -> None:
        """Create a StreamApp of a tenant."""
        app = a_stream_app()
        app["metadata"] = {"name": name, "namespace": NAMESPACE}
        app["spec"] |= {"applicationId": name, **spec}
        self.them.server.put("streamapps", app)

    def add_secret(self, name: str, **content: str) -> None:
        """Create a Secret; its values are encoded already."""
        secret = {"metadata": {"name": name, "namespace": NAMESPACE}, "data": content}
        self.them.server.put("secrets", {"apiVersion": "v1", "kind": "Secret", **secret})

    def condition(self, name: str, kind: str) -> Json:
        """A condition of a StreamApp; empty before its first status."""
        found = self.them.server.get("streamapps", NAMESPACE, name) or {}
        conditions: list[Json] = found.get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == kind), {})

    async def until_told(self, name: str, kind: str, message: str, seconds: float = 60) -> None:
        """Wait until a condition of a StreamApp says this."""
        await self.them.until(
            f"{name}: {kind} says {message!r} ({self.condition(name, kind)})",
            lambda: re.search(message, self.condition(name, kind).get("message", "")),
            seconds,
        )

    async def raised(self, replicas: int) -> float:
        """Raise the application that must not suffer; give the seconds until its StatefulSet has the replicas."""
        server = self.them.server
        app = server.get("streamapps", NAMESPACE, VICTIM)
        assert app is not None
        server.put("streamapps", {**app, "spec": {**app["spec"], "replicas": replicas}})
        return await self.them.until(f"{VICTIM} has {replicas} replicas", lambda: self.granted() == replicas)

    def granted(self) -> int:
        """Replicas of the StatefulSet of the application that must not suffer."""
        statefulset = self.them.server.get("statefulsets", NAMESPACE, VICTIM) or {}
        return int(statefulset.get("spec", {}).get("replicas", 0))

    def highest_mib(self) -> float:
        """The most memory that the process ever had."""
        text = Path(f"/proc/{self.operator.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", text)
        assert found is not None
        return int(found[1]) / 1024


@asynccontextmanager
async def a_stage(folder: Path, **settings: Any) -> AsyncIterator[Stage]:
    """Give a stage whose application has its first StatefulSet.

    Changes are seen by the operator's lists, once a second: nothing here is about watches.
    """
    async with replicas(folder, **{"resync_seconds": 1.0, **settings}) as them:
        stage = Stage(them, await them.start("one"))
        await them.until(f"{VICTIM} has a StatefulSet", lambda: stage.granted() == 1)
        yield stage
