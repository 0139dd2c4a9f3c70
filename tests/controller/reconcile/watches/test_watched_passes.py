"""What a pass takes from the watches, and what it asks the API server for: the whole operator, in virtual time."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any
from unittest.mock import patch

import pytest

from streamapp.controller.process import Operator
from streamapp.kube.client.kinds import STATEFUL_SETS, STREAM_APPS
from tests.kube.object_store import Request
from tests.prove.play import picture_at_rest
from tests.prove.scene import Scene
from tests.prove.virtual_time import VirtualLoop, run
from tests.prove.world import Picture, World, copied

Json = dict[str, Any]
SCENE = Scene("rest", 3, ())
SETTLED = 130.0
"""Away from the times at which all StreamApps are listed."""


class Cluster:
    """A world at rest, and what was asked of its API server."""

    def __init__(self, loop: VirtualLoop, picture: Picture) -> None:
        self.world = World(loop, SCENE, 1, picture)
        self.asked: list[str] = []
        sound = self.world.store.answer

        def answer(request: Request, as_of: int | None = None) -> Json:
            self.asked.append(f"{request.method} {request.plural}{'/' if request.name else ''}{request.name}")
            return sound(request, as_of)

        self.world.store.answer = answer  # type: ignore[method-assign]

    @property
    def operator(self) -> Operator:
        assert self.world.lives.present is not None
        return self.world.lives.present.operator

    @property
    def granted(self) -> int:
        return int(self.world.statefulset()["spec"]["replicas"])

    async def until_granted(self, replicas: int) -> float:
        """The seconds until so many replicas are granted."""
        began = self.world.loop.time()
        while self.granted != replicas:  # noqa: ASYNC110 (the world tells nobody)
            await asyncio.sleep(0.01)
        return self.world.loop.time() - began


def at_rest(play: Callable[[Cluster], Coroutine[Any, Any, None]]) -> None:
    """Play something in a world whose operator has had nothing to do for a while."""
    picture = copied(picture_at_rest(SCENE.ground))
    picture.group.shape = SCENE.shape
    loop = VirtualLoop()

    async def main() -> None:
        cluster = Cluster(loop, picture)
        cluster.world.begin()
        await asyncio.sleep(SETTLED)
        cluster.asked.clear()
        await play(cluster)
        assert cluster.world.judge.wrongs == []
        cluster.world.lives.end()

    run(loop, main())


def test_an_application_at_rest_costs_no_more_than_a_request_a_minute() -> None:
    async def play(cluster: Cluster) -> None:
        await asyncio.sleep(600)
        asked = Counter(cluster.asked)
        shared = {"GET streamapps", "GET horizontalpodautoscalers"}
        own = {what: number for what, number in asked.items() if what not in shared}
        assert sum(own.values()) <= 10, own
        assert asked["GET streamapps"] <= 13

    at_rest(play)


@pytest.mark.guarantee(3)
def test_a_raise_is_the_first_request_after_the_event() -> None:
    async def play(cluster: Cluster) -> None:
        cluster.world.happen("wish", 5)
        assert await cluster.until_granted(5) < 0.3
        assert cluster.asked[0] == "PATCH statefulsets/counter"

    at_rest(play)


@pytest.mark.guarantee(3)
def test_a_raise_on_an_older_statefulset_writes_nothing_and_is_made_on_a_live_read() -> None:
    async def play(cluster: Cluster) -> None:
        operator = cluster.operator
        with patch.object(type(operator.cache), "put", lambda *_: False):  # the watch tells nothing of this
            live = cluster.world.statefulset()
            notes = {**live["metadata"].get("annotations", {}), "note": "another version"}
            cluster.world.store.put("statefulsets", {**live, "metadata": {**live["metadata"], "annotations": notes}})
            await asyncio.sleep(0.2)
        cluster.asked.clear()
        cluster.world.happen("wish", 5)
        assert await cluster.until_granted(5) < 1.0
        assert cluster.asked[0] == "PATCH statefulsets/counter"
        assert "GET statefulsets/counter" in cluster.asked[: cluster.asked.index("PATCH statefulsets/counter", 1)]

    at_rest(play)


def test_a_silent_watch_is_not_believed() -> None:
    async def play(cluster: Cluster) -> None:
        operator = cluster.operator
        operator.cache._scopes[STATEFUL_SETS, None].heard_at -= 1_000
        key = next(iter(operator.applications.keys()))
        operator.queue.add(key)
        await asyncio.sleep(0.5)
        assert "GET statefulsets/counter" in cluster.asked

    at_rest(play)


def test_whatever_is_removed_was_read_live_in_the_same_pass() -> None:
    async def play(cluster: Cluster) -> None:
        cluster.world.happen("wish", 2)
        await cluster.until_granted(2)
        patched = len(cluster.asked) - 1 - cluster.asked[::-1].index("PATCH statefulsets/counter")
        since = cluster.asked[:patched]
        began = len(since) - 1 - since[::-1].index("GET statefulsets/counter")
        reads = {"GET pods", "GET persistentvolumeclaims", "GET poddisruptionbudgets/counter", "GET streamapps/counter"}
        assert reads <= {*since[max(0, began - 1) :]}

    at_rest(play)


@pytest.mark.guarantee(2)
def test_the_first_step_after_a_rest_is_made_on_live_reads() -> None:
    async def play(cluster: Cluster) -> None:
        before: list[set[str]] = []

        def see(plural: str, _body: Json, _before: Json | None) -> None:
            if plural == "statefulsets":
                before.append({*cluster.asked})

        cluster.world.store.changed.append(see)
        cluster.world.happen("wish", 2)
        while not before:  # noqa: ASYNC110 (the world tells nobody)
            await asyncio.sleep(0.01)
        assert {"GET statefulsets/counter", "GET pods", "GET persistentvolumeclaims"} <= before[0]

    at_rest(play)


def test_tasks_move_to_the_pods_of_a_raise_as_soon_as_the_clock_allows_it() -> None:
    async def play(cluster: Cluster) -> None:
        cluster.world.happen("wish", 4)
        await cluster.until_granted(4)
        await asyncio.sleep(1)
        assert cluster.world.unrest() is not None
        await asyncio.sleep(44)  # two rebalances are triggered, ten seconds and more after what they wait for
        assert cluster.world.unrest() is None

    at_rest(play)


@pytest.mark.guarantee(3)
def test_a_raise_that_the_answer_to_a_write_told_first_is_made_all_the_same() -> None:
    """The event that tells of it is no news then, and may be lost."""

    async def play(cluster: Cluster) -> None:
        operator = cluster.operator
        with patch.object(type(operator), "on_streamapp_event"):
            cluster.world.happen("wish", 5)
            await asyncio.sleep(0.2)
        assert cluster.granted == 3
        operator.client.seen(STREAM_APPS, cluster.world.app())
        assert await cluster.until_granted(5) < 1.0

    at_rest(play)


def of_two_replicas(cluster: Cluster) -> Json:
    """The StatefulSet after a removal of which no watch has told yet."""
    with patch.object(type(cluster.operator.cache), "put", lambda *_: False):
        live = cluster.world.statefulset()
        return cluster.world.store.put("statefulsets", {**live, "spec": {**live["spec"], "replicas": 2}})


@pytest.mark.guarantee(3)
def test_a_raise_to_as_many_as_before_a_removal_waits_for_no_pass() -> None:
    async def play(cluster: Cluster) -> None:
        operator = cluster.operator
        with patch.object(operator.queue, "add"):
            cluster.world.happen("wish", 2)
            await asyncio.sleep(0.2)
            operator.client.seen(STATEFUL_SETS, of_two_replicas(cluster))
            cluster.world.happen("wish", 3)
            assert await cluster.until_granted(3) < 0.3

    at_rest(play)


@pytest.mark.guarantee(3)
def test_a_raise_that_came_while_a_removal_was_on_its_way_is_made_when_that_is_answered() -> None:
    async def play(cluster: Cluster) -> None:
        operator = cluster.operator
        with patch.object(operator.queue, "add"):
            answer = of_two_replicas(cluster)
            cluster.asked.clear()
            operator.client.seen(STATEFUL_SETS, answer)
            assert await cluster.until_granted(3) < 0.3
        assert cluster.asked[0] == "PATCH statefulsets/counter"

    at_rest(play)


@pytest.mark.guarantee(2)
def test_a_streamapp_that_was_made_anew_is_judged_on_live_reads_before_anything_is_remembered_of_it() -> None:
    async def play(cluster: Cluster) -> None:
        operator, app = cluster.operator, cluster.world.app()
        store = cluster.world.store
        live = cluster.world.statefulset()
        with patch.object(type(operator.cache), "put", lambda *_: False):  # the watch tells nothing of this
            metadata = {**live["metadata"], "annotations": {"streamapp.dev/hold-record": "{}"}}
            store.put("statefulsets", {**live, "metadata": metadata})
            await asyncio.sleep(0.2)
        cluster.asked.clear()
        anew = {**app, "metadata": {**app["metadata"], "uid": "another", "resourceVersion": str(store.version + 100)}}
        operator.cache.put(STREAM_APPS, anew)
        operator.queue.add(next(iter(operator.applications.keys())))
        await asyncio.sleep(0.5)
        assert {*cluster.asked[:2]} == {"GET streamapps/counter", "GET statefulsets/counter"}

    at_rest(play)


def test_an_event_of_what_was_read_live_already_asks_for_a_pass() -> None:
    async def play(cluster: Cluster) -> None:
        operator = cluster.operator
        before: list[object] = []
        live = cluster.world.statefulset()
        notes = {**live["metadata"].get("annotations", {}), "note": "another version"}
        with patch.object(operator.queue, "add", before.append):
            told = {**live, "metadata": {**live["metadata"], "annotations": notes, "resourceVersion": "999999"}}
            operator.client.seen(STATEFUL_SETS, told)
            assert before == []
            next(watch for watch in operator.shared_watches() if watch.kind == STATEFUL_SETS)._take("MODIFIED", told)
        assert len(before) == 1

    at_rest(play)
