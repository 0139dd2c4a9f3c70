"""What changes between a judgement and the last look before the write: then nothing is written."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

import pytest

from streamapp.controller.leader.leadership import Alone, NotLeadingError
from streamapp.controller.reconcile.apply import Applier, StepObserver
from streamapp.controller.reconcile.gather import Gathered, ReplicaFacts
from streamapp.controller.reconcile.node_drains import NodeDrains
from streamapp.core.actions.decision import GrantReplicas, OpenBudget, Plan, RecordProcessId, RestartPod, Step
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.core.reasons import Reason
from streamapp.kube.client.errors import ConflictError
from streamapp.kube.client.kinds import NODES, Key
from tests.controller.doubles.bench import KEY, NAME, Bench, Clock, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE

Change = Callable[[Bench], None]
TOO_LONG = 11.0
"""Seconds; a judgement of 10 s is too old."""


def pod_uid(bench: Bench, ordinal: int) -> str:
    """The UID of a pod; empty if there is none."""
    pod = bench.server.get("pods", NAMESPACE, f"{NAME}-{ordinal}")
    return "" if pod is None else str(pod["metadata"]["uid"])


@dataclass(frozen=True)
class Deed:
    """Something that rests on coverage: how it is brought about, which step does it, and whether it was done."""

    begin: Change
    is_step: Callable[[Step], bool]
    is_done: Callable[[Bench], bool]
    spec: dict[str, Any]


def desire_less(bench: Bench) -> None:
    bench.desired(3)


def ask_for_restart(bench: Bench) -> None:
    live = bench.server.get("streamapps", NAMESPACE, NAME)
    assert live is not None
    annotations = {"streamapp.dev/restart": pod_uid(bench, 1)}
    bench.server.put("streamapps", {**live, "metadata": {**live["metadata"], "annotations": annotations}})


def cordon(bench: Bench) -> None:
    """Put each pod on a node of its own, and cordon that of pod 1."""
    for ordinal in range(4):
        pod = bench.server.get("pods", NAMESPACE, f"{NAME}-{ordinal}")
        assert pod is not None
        bench.server.put("pods", {**pod, "spec": {**pod["spec"], "nodeName": f"node-{ordinal}"}})
    drains = NodeDrains((), lambda: 0.0, lambda _: None)
    metadata = {"name": "node-1", "uid": "u-1", "resourceVersion": "5"}
    drains._cache.replace(NODES, None, [{"metadata": metadata, "spec": {"unschedulable": True}}], "5")
    drains._take(NODES, Key("", ""), None)
    bench.gatherer._node_drains = drains


def is_open(bench: Bench) -> bool:
    budget = bench.server.get("poddisruptionbudgets", NAMESPACE, NAME) or {}
    return bool(budget["spec"]["maxUnavailable"] == 1)


DEEDS = {
    "removal": Deed(
        desire_less,
        lambda step: isinstance(step, GrantReplicas) and step.is_removal,
        lambda bench: bench.granted() == 3,
        {},
    ),
    "restart": Deed(
        ask_for_restart, lambda step: isinstance(step, RestartPod), lambda bench: not pod_uid(bench, 1), {}
    ),
    "opening": Deed(
        cordon,
        lambda step: isinstance(step, OpenBudget) and step.judged_at is not None,
        is_open,
        {"disruption": {"policy": "WhenCaughtUp"}},
    ),
}


def done_after(deed: Deed, change: Change, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Let a change happen when the deed was decided and nothing of its plan was made; tell whether it is done then."""
    done: list[bool] = []
    sound = Applier.apply

    async def play(bench: Bench) -> None:
        async def apply(self: Applier, gathered: Gathered, plan: Plan, on_step: StepObserver) -> None:
            if done or not any(map(deed.is_step, plan)):
                return await sound(self, gathered, plan, on_step)
            change(bench)
            try:
                return await sound(self, gathered, plan, on_step)
            finally:
                done.append(deed.is_done(bench))

        monkeypatch.setattr(Applier, "apply", apply)
        deed.begin(bench)
        await bench.run(lambda: bool(done))

    on_a_bench(play, **deed.spec)
    return done[0]


def on_a_bench(play: Callable[[Bench], Coroutine[Any, Any, None]], **spec: Any) -> None:
    """Play something on a bench whose application has four pods and is converged."""

    async def run() -> None:
        async with a_bench(4) as bench:
            if spec:
                bench.desired(4, **spec)
                await bench.run(lambda: not is_open(bench))
            await play(bench)

    asyncio.run(run())


def nothing(_: Bench) -> None:
    """Let nothing happen."""


def restart_a_container(bench: Bench) -> None:
    bench.pods.kill(0)


def pause(bench: Bench) -> None:
    live = bench.server.get("streamapps", NAMESPACE, NAME)
    assert live is not None
    bench.server.put("streamapps", {**live, "spec": {**live["spec"], "paused": True}})


def desire_all_again(bench: Bench) -> None:
    bench.desired(4)


@dataclass(frozen=True)
class Slow(Alone):
    """Asking for the Lease takes so long that the judgement grows old."""

    clock: Clock | None = None

    async def confirm(self) -> None:
        assert self.clock is not None
        self.clock.move(TOO_LONG)


class Over(Alone):
    """Another replica has the Lease; this process's clock does not say so yet."""

    async def confirm(self) -> None:
        raise NotLeadingError("Lease", "it is held by another", "another replica goes on")


def take_long(bench: Bench) -> None:
    bench.applier._leadership = Slow(clock=bench.clock)


def lose_the_lease(bench: Bench) -> None:
    bench.applier._leadership = Over()


@pytest.mark.parametrize("name", DEEDS)
def test_what_nothing_has_changed_for_is_done(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert done_after(DEEDS[name], nothing, monkeypatch)


@pytest.mark.guarantee(1)
@pytest.mark.parametrize("name", DEEDS)
def test_nothing_is_done_where_a_container_was_restarted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not done_after(DEEDS[name], restart_a_container, monkeypatch)


@pytest.mark.guarantee(1)
@pytest.mark.parametrize("name", DEEDS)
def test_nothing_is_done_where_the_user_has_paused_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not done_after(DEEDS[name], pause, monkeypatch)


def delete_a_claim(bench: Bench) -> None:
    """Delete the claim of pod 1; the pod keeps it until it goes."""
    live = bench.server.get("persistentvolumeclaims", NAMESPACE, f"state-{NAME}-1")
    assert live is not None
    metadata = {**live["metadata"], "deletionTimestamp": "2026-11-21T12:00:00Z"}
    bench.server.put("persistentvolumeclaims", {**live, "metadata": metadata})


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("name", DEEDS)
def test_nothing_is_done_where_a_claim_is_deleted_since(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not done_after(DEEDS[name], delete_a_claim, monkeypatch)


def hold(bench: Bench) -> None:
    live = bench.server.get("streamapps", NAMESPACE, NAME)
    assert live is not None
    annotations = {**live["metadata"].get("annotations", {}), "streamapp.dev/hold": "not today"}
    bench.server.put("streamapps", {**live, "metadata": {**live["metadata"], "annotations": annotations}})


@pytest.mark.guarantee(1)
@pytest.mark.parametrize("change", [pause, hold])
@pytest.mark.parametrize("name", DEEDS)
def test_nothing_is_sent_where_the_users_word_is_received_after_everything_was_read_again(
    name: str, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, sound, deed = list[bool](), Applier._check_again, DEEDS[name]

    async def play(bench: Bench) -> None:
        async def check_again(self: Applier, facts: Gathered, to_replicas: int | None) -> None:
            await sound(self, facts, to_replicas)
            change(bench)
            bench.applications.remember_resource(KEY, bench.server.get("streamapps", NAMESPACE, NAME) or {})
            done.append(False)

        monkeypatch.setattr(Applier, "_check_again", check_again)
        deed.begin(bench)
        await bench.run(lambda: bool(done))
        done.append(deed.is_done(bench))

    on_a_bench(play, **deed.spec)
    assert not any(done)


def rebalance(bench: Bench) -> None:
    bench.group._rebalance()


def lose_the_brokers(bench: Bench) -> None:
    bench.group.is_reachable = False


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(
    ("name", "change"), [("removal", rebalance), ("removal", lose_the_brokers), ("restart", rebalance)]
)
def test_nothing_is_sent_where_the_group_has_changed_since_it_was_judged(
    name: str, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, sound, deed = list[bool](), Applier._check_again, DEEDS[name]

    async def play(bench: Bench) -> None:
        async def check_again(self: Applier, facts: Gathered, to_replicas: int | None) -> None:
            await sound(self, facts, to_replicas)
            change(bench)
            bench.clock.move(1)
            assert facts.application.watch is not None
            await facts.application.watch.poll()
            done.append(False)

        monkeypatch.setattr(Applier, "_check_again", check_again)
        deed.begin(bench)
        await bench.run(lambda: bool(done))
        done.append(deed.is_done(bench))

    on_a_bench(play, **deed.spec)
    assert not any(done)


@pytest.mark.guarantee(3)
def test_no_pod_goes_that_is_desired_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not done_after(DEEDS["removal"], desire_all_again, monkeypatch)


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("name", DEEDS)
def test_nothing_is_done_where_the_last_look_took_too_long(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not done_after(DEEDS[name], take_long, monkeypatch)


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("name", DEEDS)
def test_nothing_is_done_where_another_replica_has_the_lease(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not done_after(DEEDS[name], lose_the_lease, monkeypatch)


async def gathered(bench: Bench) -> Gathered:
    """The facts, as a pass reads them."""
    facts = await bench.gatherer.read_replicas(KEY)
    assert isinstance(facts, ReplicaFacts)
    return await bench.gatherer.gather(facts)


def test_a_pod_or_a_claim_that_the_facts_do_not_show_is_told_to_be_gone() -> None:
    async def play(bench: Bench) -> None:
        facts = await gathered(bench)
        now, process = facts.snapshot.now, ProcessId.parse("00000000-0000-4000-8000-000000000001")
        restart = RestartPod(ordinal=Ordinal(1), pod_uid="another", judged_at=now, reason=Reason.RestartCovered)
        with pytest.raises(ConflictError, match="delete pod of ordinal 1: it is gone"):
            await bench.applier.apply(facts, (restart,))
        record = RecordProcessId(ordinal=Ordinal(1), process_id=process, reason=Reason.ProcessIdUnrecorded)
        without_claims = replace(facts, live=replace(facts.live, claims=()))
        with pytest.raises(ConflictError, match=f"annotate persistentvolumeclaim state-{NAME}-1: it is gone"):
            await bench.applier.apply(without_claims, (record,))

    on_a_bench(play)
