"""A raise needs the StreamApp and the StatefulSet, and waits for nothing else."""

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aiohttp import web

from streamapp.controller.reconcile.reconciler import Reconciler
from streamapp.controller.reconcile.report import Reporter
from streamapp.core.facts.hold_annotation import decode
from streamapp.core.facts.hold_record import HoldRecord
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError
from streamapp.kube.client.kinds import BUDGETS, CLAIMS, PODS, Kind
from tests.controller.doubles.bench import KEY, NAME, Bench, a_bench, a_stream_app
from tests.controller.doubles.fake_pods import NAMESPACE
from tests.kube.api_server import Write
from tests.kube.object_store import Request

UNREADABLE = [pytest.param(kind, id=kind.plural) for kind in (PODS, CLAIMS, BUDGETS)]


def on_a_bench(play: Callable[[Bench], Coroutine[Any, Any, None]], **spec: Any) -> None:
    """Play something on a bench whose application has four pods and is converged."""

    async def run() -> None:
        async with a_bench(4, **spec) as bench:
            await play(bench)
            assert bench.wrongs == []
            # A pass that failed leaves reads behind, which end during this one.
            refuse(bench)
            bench.server.fault = lambda _: None
            await bench.make_pass()

    asyncio.run(run())


def refuse(bench: Bench, *kinds: Kind, status: int = 429) -> None:
    """Have the API server refuse reads of these kinds."""
    plurals = {kind.plural for kind in kinds}

    def answer(request: web.Request) -> tuple[int, str] | None:
        return (status, "too many requests") if plurals & set(request.path.split("/")) else None

    bench.server.refuse = answer


def written(bench: Bench, since: int) -> list[str]:
    """The writes since then, in words."""
    return [f"{write.method} {write.plural}/{write.subresource}" for write in bench.server.writes[since:]]


def events(bench: Bench) -> list[str]:
    """The reasons of all Events, in their order."""
    return [str(stored.body["reason"]) for (plural, _, _), stored in bench.server.objects.items() if plural == "events"]


@pytest.mark.guarantee(3)
@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_raise_is_made_although_another_kind_cannot_be_read(kind: Kind) -> None:
    async def play(bench: Bench) -> None:
        refuse(bench, kind)
        bench.desired(6)
        before = len(bench.server.writes)
        assert not await bench.make_pass()
        assert (bench.granted(), written(bench, before)[0]) == (6, "PATCH statefulsets/")
        assert events(bench)[-1] == "ScaledUp"

    on_a_bench(play)


@pytest.mark.guarantee(3)
@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_raise_is_made_although_the_read_of_another_kind_hangs(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(bench: Bench) -> None:
        sound, raised, goes_on = KubeClient._ask, asyncio.Event(), asyncio.Event()

        async def ask(self: KubeClient, method: str, asked: Kind, *args: Any, **keywords: Any) -> Any:
            if method == "GET" and asked == kind:
                await goes_on.wait()
            return await sound(self, method, asked, *args, **keywords)

        def see(plural: str, body: dict[str, Any], _: object) -> None:
            if plural == "statefulsets" and body["spec"]["replicas"] == 6:
                raised.set()

        monkeypatch.setattr(KubeClient, "_ask", ask)
        bench.server.changed.append(see)
        bench.desired(6)
        running = asyncio.create_task(bench.reconciler.reconcile(KEY))
        await asyncio.wait_for(raised.wait(), 30)
        assert not running.done()
        goes_on.set()
        await running

    on_a_bench(play)


def test_the_status_after_a_raise_says_unknown_of_what_could_not_be_read() -> None:
    async def play(bench: Bench) -> None:
        old = bench.status()
        refuse(bench, PODS)
        bench.desired(6)
        await bench.make_pass()
        new = bench.status()
        kept = ("replicas", "readyReplicas", "members", "observedGeneration", "lastSteps")
        assert {name: new.get(name) for name in kept} == {name: old.get(name) for name in kept}
        assert (new["statefulSetReplicas"], new["convergence"]) == (6, {"state": "Unknown", "slowest": []})
        told = {one["type"]: (one["status"], one["reason"]) for one in new["conditions"]}
        assert told == {
            "Ready": ("Unknown", "Growing"),
            "Reconciling": ("True", "Growing"),
            "Stalled": ("False", "Growing"),
            "Converged": ("Unknown", "Growing"),
            "ScaleDownHeld": ("False", "Growing"),
            "ProcessIdentityStable": ("True", "IdentityHolds"),
            "KafkaReachable": ("True", "KafkaAnswers"),
            "LearnersAvailable": ("True", "StandbysDetected"),
            "DisruptionAllowed": ("True", "OneAtATime"),
            "AutoscalingHealthy": ("True", "AutoscalingInOrder"),
        }

    on_a_bench(play)


def test_nothing_but_the_raise_is_done_while_the_pods_cannot_be_read() -> None:
    async def play(bench: Bench) -> None:
        refuse(bench, PODS)
        before = len(bench.server.writes)
        bench.desired(6, template={"spec": {"containers": [{"name": "app", "image": "app:2"}]}})
        for _ in range(20):
            bench.clock.move(5)
            await bench.make_pass()
        assert written(bench, before) == ["PATCH statefulsets/", "PATCH streamapps/status", "POST events/"]
        bench.desired(3)
        for _ in range(60):
            bench.clock.move(5)
            await bench.make_pass()
        assert (bench.granted(), len(bench.server.writes) - before, bench.pods.deleted) == (6, 3, [])

    on_a_bench(play)


@pytest.mark.parametrize("unreadable", [(), (PODS,)], ids=["all is read", "pods are not"])
def test_a_raise_ends_the_hold_and_says_so(unreadable: tuple[Kind, ...]) -> None:
    async def play(bench: Bench) -> None:
        bench.group.lag = 500_000
        bench.desired(3)
        await bench.run(lambda: bench.record() is not None)
        refuse(bench, *unreadable)
        bench.desired(5)
        await bench.make_pass()
        assert (bench.granted(), bench.record()) == (5, None)
        assert events(bench)[-2:] == ["ScaledUp", "HoldCancelled"]
        assert bench.condition("ScaleDownHeld")[0] == "False"
        assert "scaleDown" not in bench.status()

    on_a_bench(play)


def test_an_open_step_stays_on_record_through_a_raise_and_is_closed_by_a_pass_that_sees_all() -> None:
    async def play(bench: Bench) -> None:
        bench.desired(3)
        await bench.run(lambda: bench.granted() == 3)
        before = decode(bench.record() or "")
        refuse(bench, CLAIMS)
        bench.desired(5)
        await bench.make_pass()
        after = decode(bench.record() or "")
        assert isinstance(before, HoldRecord)
        assert isinstance(after, HoldRecord)
        assert (bench.granted(), after.hold, after.step) == (5, None, before.step)
        assert after.epoch > before.epoch
        refuse(bench)
        await bench.run(lambda: bench.is_settled(5))
        assert len(bench.status()["lastSteps"]) == 1

    on_a_bench(play)


def pause(bench: Bench) -> None:
    bench.desired(6, paused=True)


def dry_run(bench: Bench) -> None:
    bench.desired(6, dryRun=True)


def invalid(bench: Bench) -> None:
    bench.desired(6, kafka={})


def foreign(bench: Bench) -> None:
    theirs = bench.statefulset()
    theirs["metadata"]["ownerReferences"] = [{"uid": "somebody", "controller": True}]
    bench.server.put("statefulsets", theirs)
    bench.desired(6)


def deleted(bench: Bench) -> None:
    bench.desired(6)
    app = bench.server.get("streamapps", NAMESPACE, NAME) or {}
    bench.server.put(
        "streamapps", {**app, "metadata": {**app["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    )


def taken(bench: Bench) -> None:
    """An older StreamApp has the application ID, and pods in the group."""
    older = {"name": "older", "namespace": NAMESPACE, "uid": "0", "creationTimestamp": "2020-01-01T00:00:00Z"}
    metadata = {**(bench.server.get("streamapps", NAMESPACE, NAME) or {})["metadata"], **older}
    key, own = type(KEY)(NAMESPACE, "older"), bench.applications.find(KEY)
    assert own is not None
    bench.applications.remember_resource(key, {**a_stream_app(), "metadata": metadata})
    bench.applications.get(key, older["uid"]).memory.workload = own.memory.workload
    bench.desired(6)


@pytest.mark.parametrize("stop", [pause, dry_run, invalid, foreign, deleted, taken])
@pytest.mark.parametrize("unreadable", [(), (PODS,)], ids=["all is read", "pods are not"])
def test_what_stops_a_raise_stops_it_whatever_else_can_be_read(
    stop: Callable[[Bench], None], unreadable: tuple[Kind, ...]
) -> None:
    async def play(bench: Bench) -> None:
        stop(bench)
        refuse(bench, *unreadable)
        for _ in range(5):
            bench.clock.move(2)
            await bench.make_pass()
        assert bench.granted() == 4

    on_a_bench(play)


def test_a_raise_that_met_another_version_is_made_in_the_same_pass() -> None:
    async def play(bench: Bench) -> None:
        met: list[Write] = []

        def conflict(write: Write) -> str | None:
            if write.plural == "statefulsets" and not met:
                met.append(write)
                return "conflict"
            return None

        bench.server.fault = conflict
        bench.desired(6)
        assert await bench.make_pass()
        assert (bench.granted(), len(met)) == (6, 1)
        assert bench.condition("Ready") == ("False", "Growing")

    on_a_bench(play)


def not_accepted(bench: Bench, *plurals: str) -> None:
    """Have the API server accept no write of these kinds, as an admission policy answers that denies them."""

    def answer(request: Request) -> tuple[int, str] | None:
        return (422, "denied request: too many") if request.is_write and request.plural in plurals else None

    bench.server.refuse_write = answer


@pytest.mark.guarantee(3)
def test_a_raise_that_is_not_accepted_is_tried_again_in_each_pass_and_told_of_meanwhile() -> None:
    async def play(bench: Bench) -> None:
        not_accepted(bench, "statefulsets")
        bench.desired(6)
        await bench.make_pass()
        pause = await bench.reconciler.reconcile(KEY)
        assert (bench.granted(), bench.condition("Stalled")) == (4, ("True", "InvalidSpec"))
        assert pause is not None
        assert pause <= 15
        not_accepted(bench)
        bench.clock.move(pause)
        await bench.make_pass()
        assert (bench.granted(), events(bench)[-1]) == (6, "ScaledUp")
        assert bench.condition("Stalled")[0] == "False"

    on_a_bench(play)


def a_reconciler(bench: Bench) -> Reconciler:
    """One whose back-off is limited."""
    reporter = Reporter(bench.client, bench.metrics, "test")
    return Reconciler(bench.gatherer, bench.applier, reporter, bench.applications, scaling_pause_seconds=15)


@pytest.mark.parametrize(("desired", "longest"), [(6, 15), (3, 15), (4, math.inf)])
def test_a_failure_is_not_waited_out_for_long_while_replicas_differ(desired: int, longest: float) -> None:
    async def play(bench: Bench) -> None:
        reconciler = a_reconciler(bench)
        bench.desired(desired)
        refuse(bench, PODS)
        bench.server.fault = lambda write: "busy" if write.plural == "statefulsets" else None
        with pytest.raises(KubeError):
            await reconciler.reconcile(KEY)
        application = bench.applications.find(KEY)
        assert application is not None
        assert application.watch is not None
        assert (reconciler.longest_pause(KEY), application.watch.is_busy) == (longest, desired != 4)

    on_a_bench(play)


def test_a_failure_is_not_waited_out_for_long_while_the_replicas_are_unknown() -> None:
    async def play(bench: Bench) -> None:
        await bench.restart()
        reconciler = a_reconciler(bench)
        refuse(bench, type(PODS)("apps", "v1", "statefulsets", "StatefulSet"))
        with pytest.raises(KubeError):
            await reconciler.reconcile(KEY)
        assert reconciler.longest_pause(KEY) == 15

    on_a_bench(play)


def receive(bench: Bench, replicas: int) -> None:
    """Have the user raise the replicas, and the watch report it."""
    bench.desired(replicas)
    bench.applications.remember_resource(KEY, bench.server.get("streamapps", NAMESPACE, NAME) or {})


@pytest.mark.guarantee(3)
def test_a_raise_that_is_received_while_a_read_hangs_ends_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(bench: Bench) -> None:
        asked = asyncio.Event()

        async def hang(*_: object) -> None:
            asked.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(bench.gatherer, "gather", hang)
        running = asyncio.create_task(bench.reconciler.reconcile(KEY))
        await asked.wait()
        receive(bench, 6)
        assert await asyncio.wait_for(running, 30) == 0
        monkeypatch.undo()
        await bench.make_pass()
        assert bench.granted() == 6

    on_a_bench(play)
