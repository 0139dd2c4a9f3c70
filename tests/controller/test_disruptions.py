"""A budget that follows coverage, through the whole shell: who writes it, on what facts, and what keeps it closed."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from streamapp.api.names import ZONE
from streamapp.controller.reconcile.apply import Applier
from streamapp.controller.reconcile.node_drains import NodeDrains
from streamapp.kube.client.kinds import NODES, Key
from tests.controller.doubles.bench import NAME, Bench, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE
from tests.support import example

Json = dict[str, Any]
BUDGETS = "poddisruptionbudgets"
FOLLOWS = {"disruption": {"policy": "WhenCaughtUp"}}
TAINT = "karpenter.sh/disrupted"


def node(name: str, version: int = 5, **spec: Any) -> Json:
    return {"metadata": {"name": name, "uid": f"u-{name}", "resourceVersion": str(version)}, "spec": spec}


def watching(*nodes: Json, told: Callable[[frozenset[str]], None] = lambda _: None) -> NodeDrains:
    """The nodes as a watch has listed them."""
    drains = NodeDrains((TAINT,), lambda: 0.0, told)
    listed(drains, *nodes)
    return drains


def listed(drains: NodeDrains, *nodes: Json, version: int = 5) -> None:
    drains._cache.replace(NODES, None, nodes, str(version))
    drains._take(NODES, Key("", ""), None)


def on_a_bench(play: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    """Play something on a converged application whose budget follows coverage; each pod is on a node of its own."""

    async def run() -> None:
        async with a_bench(3) as bench:
            for ordinal in range(3):
                place(bench, ordinal)
            bench.gatherer._node_drains = watching()
            bench.desired(3, **FOLLOWS)
            await bench.run(lambda: budget(bench)["spec"]["maxUnavailable"] == 0)
            await play(bench)
            assert bench.wrongs == []

    asyncio.run(run())


def place(bench: Bench, ordinal: int) -> None:
    """Have a pod run on its node."""
    pod = bench.server.get("pods", NAMESPACE, f"{NAME}-{ordinal}")
    assert pod is not None
    bench.server.put("pods", {**pod, "spec": {**pod["spec"], "nodeName": f"node-{ordinal}"}})


def cordon(bench: Bench, *ordinals: int) -> None:
    bench.gatherer._node_drains = watching(*(node(f"node-{one}", unschedulable=True) for one in ordinals))


def budget(bench: Bench) -> Json:
    found = bench.server.get(BUDGETS, NAMESPACE, NAME)
    assert found is not None
    return found


def is_open(bench: Bench) -> bool:
    return bool(budget(bench)["spec"]["maxUnavailable"] == 1)


async def for_a_while(bench: Bench, seconds: int = 60) -> None:
    for _ in range(0, seconds, 2):
        bench.clock.move(2)
        await bench.make_pass()


@pytest.mark.guarantee(1)
def test_it_opens_while_a_node_is_drained_and_closes_when_a_pod_is_away() -> None:
    async def play(bench: Bench) -> None:
        metadata, spec = budget(bench)["metadata"], budget(bench)["spec"]
        assert (metadata["annotations"]["streamapp.dev/lease"], spec["unhealthyPodEvictionPolicy"]) == (
            "0",
            "IfHealthyBudget",
        )
        await for_a_while(bench)
        assert not is_open(bench)
        cordon(bench, 1)
        await bench.run(lambda: is_open(bench))
        assert bench.condition("DisruptionAllowed") == ("True", "EveryTaskCovered")
        bench.pods.kill(0)
        await bench.run(lambda: not is_open(bench), 6)
        assert bench.condition("DisruptionAllowed")[0] == "False"

    on_a_bench(play)


def test_without_the_policy_it_is_open_again_at_once() -> None:
    async def play(bench: Bench) -> None:
        bench.desired(3, disruption={"policy": "OneAtATime"})
        await bench.run(lambda: is_open(bench), 4)
        assert "annotations" not in budget(bench)["metadata"]
        assert budget(bench)["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"

    on_a_bench(play)


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("what", ["another process wrote the budget", "a container was restarted"])
def test_an_opening_is_not_sent_when_the_world_has_moved_on(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    judged: list[bool] = []
    sound = Applier._check_again

    async def play(bench: Bench) -> None:
        async def moved(*given: Any) -> None:
            judged.append(is_open(bench))
            if what == "a container was restarted":
                bench.pods.kill(0)
            await sound(*given)
            if what == "another process wrote the budget":
                bench.server.put(BUDGETS, {**budget(bench), "metadata": {**budget(bench)["metadata"], "labels": {}}})

        monkeypatch.setattr(Applier, "_check_again", moved)
        cordon(bench, 1)
        await bench.run(lambda: bool(judged))
        assert (is_open(bench), judged) == (False, [False])

    on_a_bench(play)


def test_what_another_writer_opens_is_closed_again() -> None:
    async def play(bench: Bench) -> None:
        bench.server.put(BUDGETS, {**budget(bench), "spec": {**budget(bench)["spec"], "maxUnavailable": 2}})
        await bench.run(lambda: budget(bench)["spec"]["maxUnavailable"] != 2, 10)

    on_a_bench(play)


def test_one_that_is_gone_comes_back_closed() -> None:
    async def play(bench: Bench) -> None:
        bench.server.remove(BUDGETS, NAMESPACE, NAME)
        await bench.run(lambda: bench.server.get(BUDGETS, NAMESPACE, NAME) is not None, 10)
        assert not is_open(bench)

    on_a_bench(play)


# The nodes.


SIGNS: dict[str, tuple[Json, str | None]] = {
    "a node as any other": ({}, None),
    "a cordoned one": ({"unschedulable": True}, "unschedulable"),
    "one with a taint of an autoscaler": ({"taints": [{"key": TAINT, "effect": "NoSchedule"}]}, TAINT),
    "one with another taint": ({"taints": [{"key": "gpu", "effect": "NoSchedule"}]}, None),
    "one with an empty list": ({"taints": None}, None),
}


@pytest.mark.parametrize(("spec", "sign"), SIGNS.values(), ids=SIGNS.keys())
def test_a_node_must_be_drained_by_these_signs(spec: Json, sign: str | None) -> None:
    told: list[frozenset[str]] = []
    drains = watching(node("blue", **spec), told=told.append)
    assert told == ([frozenset({"blue"})] if sign else [])
    found = drains._drains.get("blue")
    assert (None if found is None else found.sign) == sign


def test_each_change_is_told_once_and_a_node_that_is_gone_is_forgotten() -> None:
    told: list[frozenset[str]] = []
    drains = watching(node("blue"), node("green"), told=told.append)
    cordoned = node("blue", 6, unschedulable=True)
    for _ in range(2):
        drains._cache.put(NODES, cordoned)
        drains._take(NODES, Key("", ""), cordoned)
    assert told == [{"blue"}]
    drains._cache.remove(NODES, cordoned)
    drains._take(NODES, Key("", ""), cordoned)
    assert (told, drains._drains) == ([frozenset({"blue"})] * 2, {})


@pytest.mark.parametrize(("seconds", "are_seen"), [(0.0, True), (75.0, True), (76.0, False)])
def test_a_watch_that_is_silent_says_nothing_of_any_node(seconds: float, are_seen: bool) -> None:
    times = iter([0.0, *[seconds] * 10])
    drains = NodeDrains((TAINT,), lambda: next(times), lambda _: None)
    listed(drains, node("node-1", unschedulable=True))
    pod = replace(example.pod(1), node="node-1")
    assert (drains.are_seen, drains.on_pods((pod,))[0].drain is not None) == (are_seen, are_seen)


def test_nothing_is_known_before_the_first_list() -> None:
    assert not NodeDrains((TAINT,), lambda: 0.0, lambda _: None).are_seen


def test_the_zone_of_a_pod_is_its_own_label_or_that_of_its_node() -> None:
    blue = {"metadata": {"name": "node-1", "uid": "u", "resourceVersion": "5", "labels": {ZONE: "b"}}, "spec": {}}
    nodes = watching(blue, node("node-2"))
    on = [replace(example.pod(one), node=f"node-{one}") for one in range(3)]
    assert [pod.zone for pod in nodes.on_pods(on)] == ["", "b", ""]
    assert [pod.zone for pod in nodes.on_pods([replace(pod, zone="a") for pod in on])] == ["a", "a", "a"]
