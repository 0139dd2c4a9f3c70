"""What shared watches must not do to others: lose a raise, spin, fight another writer, or believe an older storage."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from streamapp.controller.apps.apps import ClusterAccess
from streamapp.controller.reconcile.gather import PLACED_WITHIN, has_unplaced_members
from streamapp.kube.client.kinds import STATEFUL_SETS, Key, Kind
from tests.controller.reconcile.watches.test_watched_passes import Cluster, at_rest

Json = dict[str, Any]


def key_of(cluster: Cluster) -> Key:
    """The only StreamApp."""
    return next(iter(cluster.operator.applications.keys()))


def write(cluster: Cluster, **spec: Any) -> None:
    """Write the StreamApp as its user does."""
    app = cluster.world.app()
    metadata = {**app["metadata"], "generation": app["metadata"].get("generation", 1) + 1}
    cluster.world.store.put("streamapps", {**app, "metadata": metadata, "spec": {**app["spec"], **spec}})


def events(cluster: Cluster) -> list[str]:
    """The reasons of all Events."""
    objects = cluster.world.store.objects
    return [str(stored.body["reason"]) for (plural, _, _), stored in objects.items() if plural == "events"]


def test_an_answer_from_before_the_last_event_does_not_become_what_is_desired() -> None:
    """A live pass reads more replicas; less is desired while its other read hangs. A dry run makes no raise."""

    async def play(cluster: Cluster) -> None:
        write(cluster, dryRun=True)
        await asyncio.sleep(20)
        write(cluster, replicas=7)
        await asyncio.sleep(20)
        operator, key = cluster.operator, key_of(cluster)
        sound = operator.client.find

        async def slow(kind: Kind, namespace: str, name: str) -> Json | None:
            found = await sound(kind, namespace, name)
            await asyncio.sleep(1.0 if kind == STATEFUL_SETS else 0.0)
            return found

        application = operator.applications.find(key)
        assert application is not None
        with patch.object(operator.client, "find", slow):
            application.memory.had_plan = True
            operator.queue.add(key)
            await asyncio.sleep(0.7)
            write(cluster, replicas=3)
            await asyncio.sleep(2.0)
        cluster.asked.clear()
        await asyncio.sleep(300)
        assert operator.applications.desired(key) == 3
        assert len(cluster.asked) < 60
        app = cluster.world.app()
        assert app["status"]["observedGeneration"] == app["metadata"]["generation"]

    at_rest(play)


@pytest.mark.guarantee(3)
def test_a_storage_that_was_restored_with_lower_versions_is_believed_within_a_minute() -> None:
    async def play(cluster: Cluster) -> None:
        cache, applications = cluster.operator.cache, cluster.operator.applications
        for place, entry in [*cache._entries.items()]:
            cache._entries[place] = replace(entry, version=entry.version + 1_000_000)
        for scope in cache._scopes.values():
            scope.version += 1_000_000
        for key, resource in applications._resources.items():
            version = str(int(resource["metadata"]["resourceVersion"]) + 1_000_000)
            applications._resources[key] = {
                **resource,
                "metadata": {**resource["metadata"], "resourceVersion": version},
            }
        await asyncio.sleep(60)
        cluster.world.happen("wish", 5)
        assert await cluster.until_granted(5) < 2

    at_rest(play)


@pytest.mark.parametrize("late_seconds", [0.02, 0.08, 0.1, 0.12, 0.2])
@pytest.mark.guarantee(8)
def test_a_raise_whose_answer_comes_after_its_event_is_reported(late_seconds: float) -> None:
    async def play(cluster: Cluster) -> None:
        client = cluster.operator.client
        sound, is_first = client._ask, True

        async def ask(method: str, kind: Kind, *args: Any, **keywords: Any) -> Any:
            nonlocal is_first
            answer = await sound(method, kind, *args, **keywords)
            if method == "PATCH" and kind == STATEFUL_SETS:
                await asyncio.sleep(late_seconds if is_first else 0.05)
                is_first = False
            return answer

        with patch.object(client, "_ask", ask):
            cluster.world.happen("wish", 5)
            await asyncio.sleep(20)
        assert (cluster.granted, events(cluster)) == (5, ["ScaledUp"])

    at_rest(play)


def test_two_writers_of_a_service_that_disagree_come_to_rest_for_a_minute_each_time() -> None:
    async def play(cluster: Cluster) -> None:
        store, loop = cluster.world.store, asyncio.get_running_loop()
        namespace, name = next((key[1], key[2]) for key in store.objects if key[0] == "services")

        def disagree() -> None:
            service = store.get("services", namespace, name)
            assert service is not None
            labels = {**service["metadata"]["labels"], "app.kubernetes.io/managed-by": "another"}
            if labels != service["metadata"]["labels"]:
                store.put("services", {**service, "metadata": {**service["metadata"], "labels": labels}})

        def see(plural: str, *_: object) -> None:
            if plural == "services":
                loop.call_later(0.2, disagree)

        store.changed.append(see)
        disagree()
        await asyncio.sleep(300)
        asked = Counter(cluster.asked)
        assert 2 <= asked[f"PATCH services/{name}"] <= 6
        assert asked["GET pods"] <= 12

    at_rest(play)


def test_a_service_that_another_writer_changed_once_is_mended_within_a_minute() -> None:
    async def play(cluster: Cluster) -> None:
        store = cluster.world.store
        namespace, name = next((key[1], key[2]) for key in store.objects if key[0] == "services")
        service = store.get("services", namespace, name)
        assert service is not None
        labels = {**service["metadata"]["labels"], "app.kubernetes.io/managed-by": "another"}
        store.put("services", {**service, "metadata": {**service["metadata"], "labels": labels}})
        await asyncio.sleep(65)
        mended = store.get("services", namespace, name)
        assert mended is not None
        assert mended["metadata"]["labels"] == service["metadata"]["labels"]

    at_rest(play)


@pytest.mark.parametrize("begins_after", [0.0, 7.0, 13.0, 21.0, 28.0])
def test_a_rollout_at_rest_begins_as_soon_as_two_looks_at_the_group_allow_it(begins_after: float) -> None:
    async def play(cluster: Cluster) -> None:
        await asyncio.sleep(begins_after)
        cluster.world.happen("template", 2)
        began = cluster.world.loop.time()
        while not any(one.startswith("DELETE pods") for one in cluster.asked):  # noqa: ASYNC110 (the world tells nobody)
            await asyncio.sleep(0.5)
        assert cluster.world.loop.time() - began < 35

    at_rest(play)


def test_a_member_that_no_container_is_found_for_is_looked_for_live_for_a_minute() -> None:
    async def play(cluster: Cluster) -> None:
        application = cluster.operator.applications.find(key_of(cluster))
        assert application is not None
        memory = application.memory
        assert not has_unplaced_members(memory)
        observed = memory.observed
        memory.observed = tuple(replace(one, is_confirmed=False) for one in observed)
        assert has_unplaced_members(memory)
        memory.observed = observed
        newest, later = memory.readings[0], PLACED_WITHIN * 2
        memory.observed = ()
        assert has_unplaced_members(memory)
        memory.unplaced_since = dict.fromkeys(newest.group.member_ids, newest.ended_at)  # type: ignore[union-attr]
        assert has_unplaced_members(memory)
        memory.unplaced_since = {member: at - later for member, at in memory.unplaced_since.items()}
        assert not has_unplaced_members(memory)

    at_rest(play)


@pytest.mark.parametrize(("what", "which"), [("wish", 3), ("pause", 60)])
def test_a_raise_that_waits_for_its_turn_is_not_sent_once_something_else_is_desired(what: str, which: int) -> None:
    async def play(cluster: Cluster) -> None:
        client, its_turn = cluster.operator.client, asyncio.Event()
        sound = client._ask

        async def ask(method: str, kind: Kind, *args: Any, **keywords: Any) -> Any:
            if method == "PATCH" and kind == STATEFUL_SETS:
                await its_turn.wait()
            return await sound(method, kind, *args, **keywords)

        with patch.object(client, "_ask", ask):
            cluster.world.happen("wish", 5)
            await asyncio.sleep(0.5)
            cluster.world.happen(what, which)
            await asyncio.sleep(0.5)
            its_turn.set()
            await asyncio.sleep(5)
        assert cluster.granted == 3

    at_rest(play)


@pytest.mark.guarantee(8)
def test_two_raises_before_the_next_pass_are_both_reported() -> None:
    async def play(cluster: Cluster) -> None:
        operator, key = cluster.operator, key_of(cluster)
        with patch.object(operator.queue, "add"):
            for replicas in (4, 5):
                cluster.world.happen("wish", replicas)
                await cluster.until_granted(replicas)
                await asyncio.sleep(1.5)  # the watch tells of what the StatefulSet's controller has written
        operator.queue.add(key)
        await asyncio.sleep(10)
        assert events(cluster) == ["ScaledUp", "ScaledUp"]

    at_rest(play)


def test_a_rollout_that_only_its_user_ends_is_not_looked_at_all_the_time() -> None:
    async def play(cluster: Cluster) -> None:
        write(cluster, rollout={"policy": "Paused"})
        await asyncio.sleep(20)
        cluster.world.happen("template", 2)
        await asyncio.sleep(60)
        looks, sound = list[float](), cluster.world.group.advance

        def advance() -> None:
            looks.append(cluster.world.loop.time())
            sound()

        with patch.object(type(cluster.world.group), "advance", lambda _: advance()):
            await asyncio.sleep(120)
        assert len(looks) <= 20
        assert not any(one.startswith("DELETE pods") for one in cluster.asked)

    at_rest(play)


def test_a_pass_that_ends_after_its_streamapp_is_gone_begins_no_poller() -> None:
    async def play(cluster: Cluster) -> None:
        applications, key = cluster.operator.applications, key_of(cluster)
        application = applications.find(key)
        assert application is not None
        access = application.cluster_access
        assert isinstance(access, ClusterAccess)
        applications.forget(key)
        applications.connect_group(key, application, access)
        assert application.polling is None

    at_rest(play)
