"""The life of the operator's process: it stands for the Lease, runs the parts while it leads, and hands over.

Called by `streamapp.__main__`. It never continues without one of its parts: if a watch dies, the definition is missing
or the server cannot listen, the process ends, and Kubernetes restarts it.
"""

import asyncio
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import kopf
import structlog

from streamapp.controller.agents.keys import NoKeys
from streamapp.controller.http import routes
from streamapp.controller.http.certificate import ServedCertificate
from streamapp.controller.http.probes import of_metrics, serve, serve_metrics
from streamapp.controller.leader.election import Elector, LeaseTiming
from streamapp.controller.leader.leadership import Leadership, without_lease
from streamapp.controller.leader.thread_loop import RemoteLeadership, ThreadLoop
from streamapp.controller.process import CannotStartError, Operator
from streamapp.controller.reconcile.watches import kopf_settings, registry_for
from streamapp.controller.settings import Settings
from streamapp.core.facts.policy import Timing
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.kinds import Key
from streamapp.kube.client.own_access import Login, login_of, own_configuration

log = structlog.get_logger()

Parts = Mapping[str, Coroutine[None, None, None]]

PATIENCE_SECONDS = 1.0
"""For running passes, after the order to stop; then they are cancelled and the Lease is given back."""


async def run(settings: Settings) -> None:
    """Run the operator until a signal stops it, or one of its parts ends.

    CannotStartError if it cannot begin, KubeError if it lacks a right to begin with.
    """
    _check_deadlines(settings)
    stop = asyncio.Event()
    _stop_on_signals(stop)
    metrics_of: list[Operator] = []

    def observe(method: str, resource: str, code: int) -> None:
        for operator in metrics_of:
            operator.metrics.requests.labels(method, resource, str(code)).inc()

    async with AsyncExitStack() as left_behind:
        leadership = await left_behind.enter_async_context(_leadership(settings, observe))
        client = KubeClient(
            await own_configuration(),
            deadline_seconds=settings.request_deadline_seconds,
            observe=observe,
            may_write=leadership.check,
        )
        left_behind.push_async_callback(client.close)
        operator = Operator(settings, client, leadership=leadership)
        metrics_of.append(operator)
        for_applications = [*routes.of_answers(operator.answers), *routes.of_history(operator.history)]
        for_applications.append(of_metrics(operator.health, operator.metrics))
        await _serve_the_pod_network(settings, operator, left_behind)
        for_people = await routes.serve_people(for_applications, settings.api_port)
        left_behind.push_async_callback(for_people.cleanup)
        left_behind.push_async_callback(operator.recording.close)
        left_behind.push_async_callback(operator.insight.close)
        await work_in_turn(operator, stop, lambda: _parts(operator, stop))


async def _serve_the_pod_network(settings: Settings, operator: Operator, left_behind: AsyncExitStack) -> None:
    """Serve probes and metrics until `left_behind` is closed."""
    health, metrics, folder = operator.health, operator.metrics, settings.metrics_tls_folder
    probes = await serve(settings.port, health, metrics, shows_metrics=not folder)
    left_behind.push_async_callback(probes.cleanup)
    if folder:
        tls = ServedCertificate(Path(folder)).context()
        secured = await serve_metrics(settings.metrics_port, health, metrics, tls)
        left_behind.push_async_callback(secured.cleanup)


@asynccontextmanager
async def _leadership(settings: Settings, observe: Callable[[str, str, int], None]) -> AsyncIterator[Leadership]:
    """Stand for the Lease, if there is one.

    With a client and an event loop of its own: a renewal never waits for a pass.
    """
    if not settings.lease_namespace:
        yield without_lease(datetime.now(UTC))
        return
    timing = lease_timing(settings)

    async def connected() -> KubeClient:
        return KubeClient(await own_configuration(), deadline_seconds=timing.request, at_once=2, observe=observe)

    async with ThreadLoop.running("election") as own:
        client = await own.run(connected())
        try:
            yield RemoteLeadership(Elector(client, lease_key(settings), identity_of(settings), timing), own)
        finally:
            await own.run(client.close())


async def work_in_turn(operator: Operator, stop: asyncio.Event, parts: Callable[[], Parts]) -> None:
    """Stand by, work once it is this process's turn, and give the turn back as soon as nothing writes any more.

    Args:
        operator: Whose queue is closed at the end.
        stop: Set when the process is to end.
        parts: What runs while it leads, by name, beside the renewal of the Lease. The first that ends, ends all, and
            what it raised is raised. None of them may write.
    """
    standing = asyncio.create_task(operator.stand(), name="stand")
    stopping = asyncio.create_task(stop.wait(), name="order to stop")
    running = {standing, stopping}
    try:
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        if standing.done() and not stop.is_set():
            standing.result()
            work = {"lease": operator.leadership.keep(), **parts()}
            running = {stopping, *(asyncio.create_task(part, name=name) for name, part in work.items())}
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended = {task for task in running if task.done()}
        for task in {standing, *running} - ended:
            task.cancel()
        await operator.close(PATIENCE_SECONDS)
        await operator.leadership.release()
        # Only now: kopf takes seconds to end, in which another replica can begin.
        await asyncio.gather(standing, *running, return_exceptions=True)
    for task in ended:
        log.info("stopping", reason="signal" if task is stopping else f"{task.get_name()} ended")
        task.result()


def _parts(operator: Operator, stop: asyncio.Event) -> Parts:
    operator.recording.start()
    operator.insight.start()
    log.info("started", namespaces=operator.settings.namespaces or "all", port=operator.settings.port)
    keys = operator.keys.read()
    if isinstance(keys, NoKeys):
        log.warning("agents disabled", why=keys.why)
    return {
        "watches": _watch(operator, stop),
        "shared watches": operator.watch_objects(),
        "resync": operator.resync(),
        "heartbeat": operator.health.beat(operator.client),
    }


async def _watch(operator: Operator, stop: asyncio.Event) -> None:
    """Run kopf."""

    async def login() -> Login:
        return login_of(await own_configuration())

    ours = asyncio.all_tasks()  # kopf ends every other one when it ends
    tasks = await kopf.spawn_tasks(
        registry=registry_for(operator, login),
        settings=kopf_settings(operator.settings),
        namespaces=operator.settings.namespaces,
        clusterwide=not operator.settings.namespaces,
        stop_flag=stop,
    )
    _stop_on_signals(stop)  # kopf has replaced them with its own, which only stop kopf
    await kopf.run_tasks(tasks, ignored=ours)


def _stop_on_signals(stop: asyncio.Event) -> None:
    """Set `stop` on a signal; without a handler, process 1 of a container ignores these signals."""
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)


def lease_key(settings: Settings) -> Key:
    """Give the place of the Lease."""
    return Key(settings.lease_namespace, settings.lease_name)


def lease_timing(settings: Settings) -> LeaseTiming:
    """Give the times of the Lease; CannotStartError where they do not fit each other."""
    timing = LeaseTiming(
        lease=settings.lease_seconds, renew=settings.lease_renew_seconds, retry=settings.lease_retry_seconds
    )
    if timing.fault():
        raise CannotStartError(timing.fault())
    return timing


def identity_of(settings: Settings) -> str:
    """Make up who this process is: its pod, and something that no other process of that pod has."""
    return f"{settings.instance}_{secrets.token_hex(4)}"


def _check_deadlines(settings: Settings) -> None:
    """Refuse settings under which nothing could ever be removed."""
    age = Timing().fact_age.total_seconds()
    if settings.kafka_deadline_seconds >= age or settings.poll_busy_seconds >= age:
        raise CannotStartError(
            f"STREAMAPP_KAFKA_DEADLINE_SECONDS and STREAMAPP_POLL_BUSY_SECONDS must be less than {age:g}: facts older "
            "than that decide nothing"
        )
