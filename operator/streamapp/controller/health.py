"""Answers probes, Prometheus, and who asks about tasks and findings, over HTTP.

In the same event loop as everything else: a loop that hangs answers nobody.

`/healthz` fails when the process can no longer do its work although it lives: a key waits or a pass runs for too long,
the API server has refused to list for too long, or a watch has died. `/readyz` says whether the first lists are in, or,
of a replica that stands by, whether it sees who leads: so a rollout goes on past it, and it counts for a budget.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from streamapp.api.answers import OPERATOR_PATH
from streamapp.controller.answering import Answer, Answers, Question
from streamapp.controller.leading import ALONE, Leadership
from streamapp.controller.metrics import Metrics
from streamapp.kube.client import KubeClient
from streamapp.kube.errors import KubeError
from streamapp.kube.places import PODS, STATEFUL_SETS, STREAM_APPS, Key

WATCHED = (STREAM_APPS, STATEFUL_SETS, PODS)
MISSED_HEARTBEATS = 4


@dataclass(slots=True)
class Health:
    """What the probes are answered from."""

    queue_age: Callable[[], float]
    """Seconds that the key due longest has waited."""
    stuck_seconds: float
    heartbeat_seconds: float
    leadership: Leadership = ALONE
    is_ready: bool = False
    _listed_at: dict[str, float] = field(default_factory=dict)
    """When each kind was last listed, on the loop's clock."""

    def faults(self) -> list[str]:
        """What is wrong, as sentences; empty where nothing is."""
        now = asyncio.get_running_loop().time()
        found = []
        age = self.queue_age()
        if age > self.stuck_seconds:
            found.append(f"queue: a key has waited or run for {age:.0f} s, allowed are {self.stuck_seconds:.0f} s")
        for kind, at in self._listed_at.items():
            if now - at > MISSED_HEARTBEATS * self.heartbeat_seconds:
                found.append(f"watch: {kind} could not be listed for {now - at:.0f} s")
        return found

    def unready(self) -> str:
        """Why nothing can be expected of this process, as a sentence; empty where it can."""
        if self.leadership.leads():
            return "" if self.is_ready else "listing"
        return self.leadership.blind()

    async def beat(self, client: KubeClient, namespaces: tuple[str, ...]) -> None:
        """List every watched kind again and again, the least there is, until cancelled."""
        loop = asyncio.get_running_loop()
        self._listed_at = {kind.plural: loop.time() for kind in WATCHED}
        while True:
            for kind in WATCHED:
                try:
                    for namespace in namespaces or (None,):
                        await client.heartbeat(kind, namespace)
                    self._listed_at[kind.plural] = loop.time()
                except KubeError:
                    continue  # how long it has failed is what counts
            await asyncio.sleep(self.heartbeat_seconds)


async def serve(port: int, health: Health, metrics: Metrics, answers: Answers) -> web.AppRunner:
    """Start the server; `cleanup` of what it gives ends it."""

    async def healthz(_: web.Request) -> web.Response:
        faults = health.faults()
        return web.Response(status=500 if faults else 200, text="\n".join(faults) or "ok")

    async def readyz(_: web.Request) -> web.Response:
        why_not = health.unready()
        role = "ok" if health.leadership.leads() else f"standing by, {health.leadership.holder or 'nobody'} leads"
        return web.Response(status=503 if why_not else 200, text=why_not or role)

    async def show(_: web.Request) -> web.Response:
        metrics.queue_oldest_seconds.set(health.queue_age())
        return web.Response(body=metrics.text(), headers={"Content-Type": "text/plain; version=1.0.0; charset=utf-8"})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", show)])
    app.add_routes(_routes(answers))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, port=port).start()
    return runner


def _routes(answers: Answers) -> list[web.RouteDef]:
    """What is told of applications; the paths are those of `streamapp.api.answers`."""

    async def about_operator(_: web.Request) -> web.Response:
        return _response(answers.about_operator())

    async def about(request: web.Request) -> web.Response:
        key = Key(request.match_info["namespace"], request.match_info["name"])
        return _response(await answers.about(Question(request.match_info["question"]), key))

    questions = "|".join(question.value for question in Question)
    return [
        web.get(OPERATOR_PATH, about_operator),
        web.get(f"/v1/apps/{{namespace}}/{{name}}/{{question:{questions}}}", about),
    ]


def _response(answer: Answer) -> web.Response:
    kind = "application/json" if answer.is_json else "text/plain"
    again = {} if answer.status != 503 else {"Retry-After": "5"}
    return web.Response(status=answer.status, body=answer.body, content_type=kind, headers=again)
