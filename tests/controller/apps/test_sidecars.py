"""Pods in which somebody injects a container of their own, as service meshes do: in front of the application's."""

import asyncio
from typing import Any

import pytest

from streamapp.kube.objects import from_json, trimmed
from tests.controller.doubles.bench import Bench, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE

SIDECAR = "istio-proxy"


def inject(bench: Bench) -> None:
    """Put a running sidecar before the application in every pod."""
    for number in range(4):
        pod = bench.server.get("pods", NAMESPACE, f"counter-{number}")
        assert pod is not None
        pod["spec"]["containers"].insert(0, {"name": SIDECAR, "image": "proxy:1"})
        running = {"running": {"startedAt": pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]}}
        pod["status"]["containerStatuses"].append(
            {"name": SIDECAR, "containerID": f"containerd://{SIDECAR}-{number}", "restartCount": 0, "state": running}
        )
        bench.server.put("pods", pod)


def crash_sidecar(bench: Bench, number: int) -> None:
    """End a sidecar; the application beside it runs on."""
    pod = bench.server.get("pods", NAMESPACE, f"counter-{number}")
    assert pod is not None
    status = pod["status"]["containerStatuses"][-1]
    ended = {"containerID": status["containerID"], "finishedAt": bench.clock.now().isoformat(), "reason": "Error"}
    again = {"running": {"startedAt": bench.clock.now().isoformat()}}
    status |= {"lastState": {"terminated": ended}, "containerID": "containerd://again", "state": again}
    bench.server.put("pods", pod)


@pytest.mark.guarantee(7)
def test_the_end_of_a_sidecar_puts_nobody_out_of_the_group() -> None:
    async def play() -> None:
        async with a_bench(4) as bench:
            inject(bench)
            for _ in range(4):
                bench.clock.move(10)
                await bench.make_pass()
            before = set(bench.group.members)
            crash_sidecar(bench, 2)
            bench.clock.move(1)
            await bench.make_pass()
            assert bench.group.wrongs == []
            assert set(bench.group.members) == before

    asyncio.run(play())


@pytest.mark.guarantee(7)
def test_the_end_of_a_sidecar_puts_nobody_out_although_the_spec_was_invalid_meanwhile() -> None:
    async def play() -> None:
        async with a_bench(4) as bench:
            inject(bench)
            sound: dict[str, Any] = {"spec": {"containers": [{"name": "app", "image": "app:1"}]}}
            seeded = {"name": "streamapp-seed", "image": "mine:1"}
            bench.desired(4, template={"spec": {**sound["spec"], "initContainers": [seeded]}})
            for _ in range(4):
                bench.clock.move(10)
                await bench.make_pass()
            assert bench.condition("Stalled") == ("True", "InvalidSpec")
            bench.desired(4, template=sound)
            crash_sidecar(bench, 2)
            bench.clock.move(1)
            await bench.make_pass()
            assert bench.group.wrongs == []

    asyncio.run(play())


@pytest.mark.guarantee(7)
@pytest.mark.parametrize("mark", ["mount", "annotation"])
def test_the_end_of_a_sidecar_puts_nobody_out_although_the_spec_now_has_the_application_in_it(mark: str) -> None:
    async def play() -> None:
        async with a_bench(4) as bench:
            inject(bench)
            for number in range(4):
                pod = bench.server.get("pods", NAMESPACE, f"counter-{number}")
                assert pod is not None
                mount_claim(pod, *(("app",) if mark == "mount" else ("app", SIDECAR)))
                pod["metadata"]["annotations"] = {"streamapp.dev/container": "app"} if mark == "annotation" else {}
                bench.server.put("pods", pod)
            both = [{"name": "app", "image": "app:1"}, {"name": SIDECAR, "image": "proxy:1"}]
            bench.desired(4, template={"spec": {"containers": both}}, container=SIDECAR, rollout={"policy": "Paused"})
            await bench.restart()  # whoever remembers in which container a member was sees it at once
            for _ in range(4):
                bench.clock.move(10)
                await bench.make_pass()
            assert bench.condition("Stalled") == ("False", "Steady")
            before = set(bench.group.members)
            crash_sidecar(bench, 2)
            bench.clock.move(1)
            await bench.make_pass()
            assert bench.group.wrongs == []
            assert set(bench.group.members) == before

    asyncio.run(play())


def mount_claim(pod: dict[str, Any], *containers: str, volume: str = "state") -> None:
    """Mount the pod's claim as a StatefulSet does."""
    claim = {"claimName": f"state-{pod['metadata']['name']}"}
    pod["spec"]["volumes"] = [{"name": volume, "persistentVolumeClaim": claim}]
    for one in pod["spec"]["containers"]:
        if one["name"] in containers:
            one["volumeMounts"] = [{"name": volume, "mountPath": "/var/lib/streams"}]


def a_pod_with(*containers: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "counter-0", "uid": "u"},
        "spec": {"containers": [{"name": one} for one in containers]},
        "status": {"containerStatuses": [{"name": one, "containerID": one} for one in containers]},
    }


@pytest.mark.parametrize(
    ("mounting", "volume", "port_of", "found"),
    [
        pytest.param(("former",), "state", None, "former", id="the one with the pod's own claim"),
        pytest.param(("former", "app"), "state", None, "app", id="the one that is named among those with the claim"),
        pytest.param(("former",), "shared", None, "app", id="another claim tells nothing"),
        pytest.param(("app",), "state", "former", "former", id="the one with the agent's port"),
        pytest.param(("former", "app"), "state", "annotation", "former", id="the one that the pod names among those"),
        pytest.param((), "state", "annotation", "former", id="the one that the pod names"),
        pytest.param(("app",), "state", "annotation", "app", id="the one with the claim, whatever the pod names"),
    ],
)
def test_a_pod_keeps_the_container_that_the_application_had_in_its_template(
    mounting: tuple[str, ...], volume: str, port_of: str | None, found: str
) -> None:
    pod = a_pod_with("app", "former")
    mount_claim(pod, *mounting, volume=volume)
    if port_of == "annotation":
        pod["metadata"]["annotations"] = {"streamapp.dev/container": "former", "of/others": "app"}
    for one in pod["spec"]["containers"]:
        if one["name"] == port_of:
            one["ports"] = [{"name": "http", "containerPort": 80}, {"name": "streamapp-agent", "containerPort": 7711}]
    for seen in (pod, trimmed.pod(pod)):
        (read,) = from_json.pods((seen,), "counter", None, "app")
        assert read.container.id == found


@pytest.mark.parametrize(
    ("containers", "name", "found"),
    [
        pytest.param(("app", SIDECAR), "app", "app", id="by its name"),
        pytest.param((SIDECAR, "app"), "app", "app", id="by its name, wherever it stands"),
        pytest.param(("former",), "app", "former", id="the only one, whatever it was called"),
        pytest.param((SIDECAR, "former"), "app", None, id="unknown among several"),
    ],
)
def test_the_application_is_found_among_the_containers(
    containers: tuple[str, ...], name: str, found: str | None
) -> None:
    pod = a_pod_with(*containers)
    (seen,) = from_json.pods((pod,), "counter", None, name)
    assert (seen.container.id, seen.container.ever_ran) == (found, found is None)
