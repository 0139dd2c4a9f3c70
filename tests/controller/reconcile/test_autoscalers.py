"""Who drives the replicas, as the passes find out: seldom, once for all of a namespace, and in nobody's way."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aiohttp import web

from streamapp.controller.reconcile import autoscalers
from streamapp.controller.reconcile.gather import ReplicaFacts
from streamapp.core.facts.autoscalers import NOT_LISTED, ReplicaWritersUnknown
from streamapp.kube.client.client import KubeClient
from tests.controller.doubles.bench import KEY, NAME, Bench, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE

PATH = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
IN_ORDER = ("True", "AutoscalingInOrder")
Json = dict[str, Any]


def on_a_bench(play: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with a_bench(4) as bench:
            await play(bench)

    asyncio.run(run())


def an_hpa(kind: str = "StreamApp", **status: Any) -> Json:
    version = "streamapp.dev/v1alpha1" if kind == "StreamApp" else "apps/v1"
    return {
        "metadata": {"name": "cpu", "namespace": NAMESPACE},
        "spec": {"scaleTargetRef": {"apiVersion": version, "kind": kind, "name": NAME}, "maxReplicas": 6},
        "status": status,
    }


def asked(bench: Bench) -> int:
    return sum(1 for read in bench.server.reads if read.startswith(PATH))


async def passes(bench: Bench, count: int, every: float) -> None:
    for _ in range(count):
        bench.clock.move(every)
        assert await bench.make_pass()


def refuse(status: int) -> Callable[[web.Request], tuple[int, str] | None]:
    return lambda request: (status, "no") if request.path == PATH else None


def test_an_autoscaler_past_the_streamapp_is_named_on_the_resource_and_in_one_event() -> None:
    async def play(bench: Bench) -> None:
        assert bench.condition("AutoscalingHealthy") == IN_ORDER
        bench.server.put("horizontalpodautoscalers", an_hpa("StatefulSet"))
        await passes(bench, 8, 10)
        assert bench.condition("AutoscalingHealthy") == ("False", "AutoscalerAimsAtStatefulSet")
        events = [body for (plural, *_), body in bench.server.objects.items() if plural == "events"]
        told = [one.body for one in events if one.body["reason"] == "StatefulSetAutoscalerFound"]
        assert [(one["type"], "cpu" in one["note"]) for one in told] == [("Warning", True)]
        bench.server.remove("horizontalpodautoscalers", NAMESPACE, "cpu")
        await passes(bench, 8, 10)
        assert bench.condition("AutoscalingHealthy") == IN_ORDER

    on_a_bench(play)


def test_they_are_listed_every_thirty_seconds_at_most() -> None:
    async def play(bench: Bench) -> None:
        await passes(bench, 1, 60)
        before = asked(bench)
        await passes(bench, 29, 1)
        assert asked(bench) == before
        await passes(bench, 2, 1)
        assert asked(bench) == before + 1

    on_a_bench(play)


def test_a_second_streamapp_of_the_namespace_costs_no_second_list() -> None:
    async def play(bench: Bench) -> None:
        other = {**(bench.server.get("streamapps", NAMESPACE, NAME) or {})}
        bench.server.put("streamapps", {**other, "metadata": {"name": "orders", "namespace": NAMESPACE}})
        before = asked(bench)
        await passes(bench, 1, 60)
        facts = await bench.gatherer.read_replicas(type(KEY)(NAMESPACE, "orders"))
        assert isinstance(facts, ReplicaFacts)
        await bench.gatherer.gather(facts)
        assert asked(bench) == before + 1

    on_a_bench(play)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (403, "The operator lacks the right to list horizontalpodautoscalers of autoscaling/v2 in namespace"),
        (404, "The API server does not know horizontalpodautoscalers of autoscaling/v2"),
    ],
)
def test_without_the_right_all_goes_on_and_it_is_asked_again_every_ten_minutes(status: int, said: str) -> None:
    async def play(bench: Bench) -> None:
        bench.server.refuse = refuse(status)
        await passes(bench, 1, 60)
        before = asked(bench)
        await passes(bench, 58, 10)
        assert asked(bench) == before
        assert bench.condition("AutoscalingHealthy") == ("Unknown", "AutoscalersUnread")
        (condition,) = [one for one in bench.status()["conditions"] if one["type"] == "AutoscalingHealthy"]
        assert said in condition["message"]
        bench.desired(3)
        await bench.run(lambda: bench.is_settled(3), 600)
        bench.server.refuse = lambda _: None
        await passes(bench, 61, 10)
        assert bench.condition("AutoscalingHealthy") == IN_ORDER

    on_a_bench(play)


@pytest.mark.parametrize("status", [503, 401])
def test_what_was_listed_is_told_for_five_minutes_while_there_is_no_answer(status: int) -> None:
    async def play(bench: Bench) -> None:
        bench.server.put("horizontalpodautoscalers", an_hpa("StatefulSet"))
        await passes(bench, 1, 60)
        bench.server.refuse = refuse(status)
        await passes(bench, 4, 60)
        assert bench.condition("AutoscalingHealthy") == ("False", "AutoscalerAimsAtStatefulSet")
        await passes(bench, 3, 60)
        assert bench.condition("AutoscalingHealthy") == ("Unknown", "AutoscalersUnread")

    on_a_bench(play)


@pytest.mark.guarantee(3)
def test_growth_does_not_wait_for_a_list_of_autoscalers() -> None:
    async def play(bench: Bench) -> None:
        before = asked(bench)
        bench.desired(6)
        bench.clock.move(60)
        await bench.make_pass()
        assert (bench.granted(), asked(bench)) == (6, before)

    on_a_bench(play)


def test_another_writer_beside_an_autoscaler_is_named() -> None:
    async def play(bench: Bench) -> None:
        bench.server.put("horizontalpodautoscalers", an_hpa())
        app = bench.server.get("streamapps", NAMESPACE, NAME) or {}
        annotations = {"kubectl.kubernetes.io/last-applied-configuration": '{"spec":{"replicas":4}}'}
        bench.server.put("streamapps", {**app, "metadata": {**app["metadata"], "annotations": annotations}})
        await passes(bench, 2, 60)
        assert bench.condition("AutoscalingHealthy") == ("False", "TwoWritersOfReplicas")
        (condition,) = [one for one in bench.status()["conditions"] if one["type"] == "AutoscalingHealthy"]
        assert "HorizontalPodAutoscaler cpu, kubectl-client-side-apply." in condition["message"]

    on_a_bench(play)


class Silent(KubeClient):
    """An API server that never answers a list."""

    def __init__(self) -> None:
        self.asked = 0

    async def list(self, *_: object) -> list[Json]:
        self.asked += 1
        await asyncio.Event().wait()
        return []


def test_an_api_server_that_does_not_answer_is_not_waited_for_by_many_nor_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(autoscalers, "DEADLINE_SECONDS", 0.05)

    async def play() -> None:
        client = Silent()
        known = autoscalers.AutoscalerLister(client, lambda: 0.0)
        assert known.replica_writers(KEY, {}) == NOT_LISTED
        first = asyncio.create_task(known.refresh(KEY.namespace))
        await asyncio.sleep(0)
        await known.refresh(KEY.namespace)
        assert (client.asked, first.done(), known.replica_writers(KEY, {})) == (1, False, NOT_LISTED)
        await first
        assert known.replica_writers(KEY, {}) == ReplicaWritersUnknown(
            "They could not be listed: no answer within 0.05 s"
        )

    asyncio.run(play())
