"""Several watched namespaces: what one of them that is gone, or that is slow, keeps from the others."""

import asyncio
from itertools import islice
from typing import Any

import pytest
from structlog.typing import EventDict

from streamapp.controller.namespaces import WatchedNamespaces
from streamapp.controller.process import Operator
from streamapp.controller.reconcile.watches import kopf_settings
from streamapp.controller.settings import Settings
from streamapp.core.facts.snapshot import UnlistedNamespaces
from streamapp.kube.client.client import Check, Json
from streamapp.kube.client.errors import KubeError, of_status
from streamapp.kube.client.kinds import Key
from tests.controller.doubles.bench import a_stream_app
from tests.kube.object_store import ObjectStore, Request
from tests.kube.store_client import StoreClient, answer_of
from tests.prove.virtual_time import VirtualLoop, run


class Cluster(StoreClient):
    """Two namespaces with a StreamApp each; any of them can be gone, with its Role."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.store = ObjectStore(loop.now)
        for namespace in ("one", "two"):
            app = a_stream_app()
            self.store.put("streamapps", {**app, "metadata": {"name": "counter", "namespace": namespace}})
        self.gone: set[str] = set()
        self.answers = 403
        """What the API server says of them."""
        self.refused_kinds: set[str] = set()
        self.seconds: dict[str, float] = {}
        """How long an answer about a namespace takes."""

    async def deliver(self, request: Request, what: str, last_check: Check | None) -> Json:  # noqa: ARG002 (nothing waits)
        """Answer after a while, or refuse."""
        await asyncio.sleep(self.seconds.get(request.namespace, 0.01))
        if request.namespace in self.gone or request.plural in self.refused_kinds:
            raise of_status(self.answers, what, f"{request.plural} is forbidden in namespace {request.namespace}")
        return answer_of(self.store, request, what)


class Watching(Operator):
    """The product's operator, whose passes are only noted."""

    def __init__(self, loop: VirtualLoop, **settings: Any) -> None:
        self.cluster = Cluster(loop)
        chosen = Settings(**{"namespaces": ("one", "two"), **settings})
        super().__init__(chosen, self.cluster, loop.now, loop.time)
        self.passes: list[tuple[float, str]] = []

    async def _reconcile(self, key: Key) -> float | None:
        self.passes.append((round(asyncio.get_running_loop().time()), key.namespace))
        return None

    async def work(self, seconds: float) -> None:
        """Do for so long what the process does beside its watches."""
        parts = [asyncio.create_task(part) for part in (self.resync(), self.health.beat(self.client))]
        await asyncio.sleep(seconds)
        for part in parts:
            part.cancel()
        await asyncio.gather(*parts, return_exceptions=True)

    def shown(self, namespace: str) -> float | None:
        """What the metric says of a namespace."""
        return self.metrics.registry.get_sample_value("streamapp_namespace_listed", {"namespace": namespace})


@pytest.mark.guarantee(3)
def test_a_namespace_that_is_gone_fails_no_probe_and_stops_no_pass_of_the_others(log_lines: list[EventDict]) -> None:
    loop = VirtualLoop()

    async def main() -> None:
        operator = Watching(loop)
        operator.cluster.gone = {"two"}
        await operator.work(1_000)
        assert (operator.health.faults(), operator.health.unready()) == ([], "")
        assert operator.passes == [(0, "one")]
        assert (operator.shown("one"), operator.shown("two")) == (1, 0)

    run(loop, main())
    (line,) = (line for line in log_lines if line["event"] == "namespace cannot be listed")
    assert (line["namespace"], "forbidden in namespace two" in line["error"]) == ("two", True)


def test_a_namespace_that_comes_back_is_taken_up_again(log_lines: list[EventDict]) -> None:
    loop = VirtualLoop()

    async def main() -> None:
        operator = Watching(loop)
        operator.cluster.gone = {"two"}
        work = asyncio.create_task(operator.work(400))
        await asyncio.sleep(300)
        operator.cluster.gone = set()
        await work
        assert operator.passes[:1] == [(0, "one")]
        later = operator.passes[1:]
        assert {namespace for _, namespace in later} == {"one", "two"}, "now all StreamApps are known"
        assert all(300 <= at <= 330 for at, _ in later)
        assert operator.shown("two") == 1

    run(loop, main())
    assert [line["namespace"] for line in log_lines if line["event"] == "namespace can be listed again"] == ["two"]


def test_health_fails_where_no_namespace_can_be_listed_and_recovers() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        operator = Watching(loop)
        work = asyncio.create_task(operator.work(1_000))
        await asyncio.sleep(100)
        operator.cluster.gone = {"one", "two"}
        await asyncio.sleep(200)
        assert operator.health.faults()[0].startswith("watch: listing streamapps in one has failed for 2")
        operator.cluster.gone = {"two"}
        await asyncio.sleep(31)
        assert operator.health.faults() == []
        await work

    run(loop, main())


def test_health_fails_where_one_kind_can_be_listed_nowhere() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        operator = Watching(loop, namespaces=())
        operator.cluster.refused_kinds = {"pods"}
        await operator.work(200)
        assert operator.health.faults() == ["watch: listing pods has failed for 200 s"]

    run(loop, main())


def test_nothing_is_ready_before_one_namespace_has_answered() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        operator = Watching(loop)
        operator.cluster.gone = {"one", "two"}
        work = asyncio.create_task(operator.work(100))
        await asyncio.sleep(60)
        assert operator.health.unready() == "cache not synced"
        operator.cluster.gone = {"two"}
        await work
        assert operator.health.unready() == ""

    run(loop, main())


def test_kopf_never_runs_out_of_tries_for_a_namespace_that_refuses_it() -> None:
    pauses = kopf_settings(Settings()).networking.error_backoffs
    assert not isinstance(pauses, float)
    for _ in range(2):  # each request begins anew
        assert list(islice(pauses, 10_000))[-1] == 30


def _refusal(status: int) -> KubeError:
    return of_status(status, "list streamapps", "no")


@pytest.mark.parametrize("status", [403, 404])
def test_an_answer_that_refuses_a_namespace_is_news_once_and_silence_takes_it_back(status: int) -> None:
    namespaces = WatchedNamespaces(("one", "two"))
    assert namespaces.unlisted == UnlistedNamespaces(silent=("one", "two"))
    assert not namespaces.could_not_list("two", _refusal(503))
    assert namespaces.has_listed("one")
    assert (namespaces.first_round.is_set(), namespaces.is_synced) == (True, True)
    assert namespaces.could_not_list("two", _refusal(status))
    assert namespaces.unlisted == UnlistedNamespaces(refusing=("two",))
    assert not namespaces.could_not_list("two", _refusal(status))
    assert not namespaces.could_not_list("two", _refusal(503))
    assert namespaces.unlisted == UnlistedNamespaces(silent=("two",))
    assert namespaces.has_listed("two")
    assert not namespaces.could_not_list("two", _refusal(status))
    assert namespaces.unlisted == UnlistedNamespaces()


@pytest.mark.parametrize("status", [401, 429, 500, 503, 504])
def test_what_says_nothing_about_the_namespace_is_silence(status: int) -> None:
    namespaces = WatchedNamespaces((None,))
    assert not namespaces.could_not_list(None, _refusal(status))
    assert namespaces.unlisted == UnlistedNamespaces(silent=("*",))
