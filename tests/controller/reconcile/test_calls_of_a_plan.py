"""A plan costs few calls, however many pods it is about, and a raise does not wait for its end."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

import pytest

from streamapp.api.names import HOLD_RECORD
from streamapp.controller.apps.raise_watch import RaiseWatch
from streamapp.controller.ports import KafkaStepError
from streamapp.controller.reconcile.apply import Applier, RaisePendingError
from streamapp.controller.reconcile.gather import Gathered, ReplicaFacts
from streamapp.core.actions.decision import (
    Evict,
    Fence,
    GrantReplicas,
    OpenBudget,
    Plan,
    RecordProcessId,
    RestartPod,
    Step,
    TriggerRebalance,
)
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.core.reasons import Reason
from streamapp.kube.objects import claims
from tests.controller.doubles.bench import KEY, NAME, Bench, a_bench
from tests.controller.doubles.fake_group import FakeGroup
from tests.controller.doubles.fake_pods import NAMESPACE
from tests.kube.api_server import Write

Json = dict[str, Any]
PROCESS = ProcessId.parse("00000000-0000-4000-8000-000000000001")
EVICTIONS: Plan = tuple(
    Evict(members=(MemberKey(f"member-{number}", None),), end=None, reason=Reason.ContainerEnded)
    for number in range(39)
)


def on_a_bench(play: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    """Play something on a bench whose application has four pods and is converged."""

    async def run() -> None:
        async with a_bench(4) as bench:
            await play(bench)

    asyncio.run(run())


async def gathered(bench: Bench) -> Gathered:
    """The facts, as a pass reads them."""
    facts = await bench.gatherer.read_replicas(KEY)
    assert isinstance(facts, ReplicaFacts)
    return await bench.gatherer.gather(facts)


def watch_evictions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str]]:
    """Give a list that each call to the brokers is added to: whom it evicts, and why."""
    calls: list[tuple[list[str], str]] = []

    async def evict(_: FakeGroup, members: Sequence[MemberKey], reason: str) -> None:
        calls.append(([member.id for member in members], reason))

    monkeypatch.setattr(FakeGroup, "evict", evict)
    return calls


@pytest.mark.guarantee(3)
def test_all_members_are_evicted_in_one_call_and_each_step_is_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(bench: Bench) -> None:
        calls, observed = watch_evictions(monkeypatch), list[tuple[Step, bool]]()
        probe = Evict(
            members=(MemberKey("member-3", None), MemberKey("probe", None)), end=None, reason=Reason.ProbeMemberLeft
        )
        plan = (*EVICTIONS, probe)
        await bench.applier.apply(await gathered(bench), plan, lambda step, is_done: observed.append((step, is_done)))
        ids = [f"member-{number}" for number in range(39)]
        assert calls == [([*ids, "probe"], "ContainerEnded, ProbeMemberLeft")]
        assert observed == [(step, True) for step in plan]

    on_a_bench(play)


def test_the_process_ids_of_all_ordinals_are_recorded_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(bench: Bench) -> None:
        everybody = asyncio.Barrier(4)

        async def record(*_: object) -> None:
            await everybody.wait()

        monkeypatch.setattr(claims, "record_process_id", record)
        plan = tuple(
            RecordProcessId(ordinal=Ordinal(number), process_id=PROCESS, reason=Reason.ProcessIdUnrecorded)
            for number in range(4)
        )
        facts = await gathered(bench)
        await asyncio.wait_for(bench.applier.apply(facts, plan), 30)

    on_a_bench(play)


def test_one_process_id_that_cannot_be_recorded_does_not_keep_the_others_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(bench: Bench) -> None:
        recorded: list[int] = []

        async def record(_client: object, _app: object, _live: object, ordinal: Ordinal, _process: object) -> None:
            if ordinal == 1:
                raise ValueError("injected")
            recorded.append(ordinal)

        monkeypatch.setattr(claims, "record_process_id", record)
        plan = tuple(
            RecordProcessId(ordinal=Ordinal(number), process_id=PROCESS, reason=Reason.ProcessIdUnrecorded)
            for number in range(4)
        )
        facts = await gathered(bench)
        with pytest.raises(ValueError, match="injected"):
            await bench.applier.apply(facts, plan)
        assert recorded == [0, 2, 3]

    on_a_bench(play)


def test_what_brokers_refuse_stops_what_rests_on_them_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(bench: Bench) -> None:
        tried, recorded = list[str](), list[Ordinal]()

        async def refuse(*_: object) -> None:
            raise KafkaStepError("group word-count: evict: the right READ is missing")

        async def record(_client: object, _app: object, _live: object, ordinal: Ordinal, _process: object) -> None:
            recorded.append(ordinal)

        monkeypatch.setattr(FakeGroup, "evict", refuse)
        monkeypatch.setattr(claims, "record_process_id", record)
        facts, writes = await gathered(bench), len(bench.server.writes)
        now, statefulset = facts.snapshot.now, facts.snapshot.workload.statefulset
        assert statefulset is not None
        fence = Fence(statefulset.uid, statefulset.resource_version)
        plan: Plan = (
            EVICTIONS[0],
            RecordProcessId(ordinal=Ordinal(1), process_id=PROCESS, reason=Reason.ProcessIdUnrecorded),
            OpenBudget(reason=Reason.EvictionCovered, evictable=Ordinal(1), judged_at=now),
            RestartPod(ordinal=Ordinal(2), pod_uid="any", judged_at=now, reason=Reason.RestartCovered),
            GrantReplicas(
                from_replicas=4, to_replicas=3, record=None, fence=fence, judged_at=now, reason=Reason.Covered
            ),
            TriggerRebalance(like_member="member-0", reason=Reason.ReadingsPending),
        )
        with pytest.raises(KafkaStepError, match="READ is missing"):
            await bench.applier.apply(facts, plan, lambda step, _: tried.append(type(step).__name__))
        assert (tried, recorded, bench.server.writes[writes:]) == (["Evict", "RecordProcessId"], [1], [])

    on_a_bench(play)


def test_a_service_that_is_gone_is_made_again_while_brokers_refuse_every_rebalance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(bench: Bench) -> None:
        async def refuse(*_: object) -> None:
            raise KafkaStepError("group word-count: trigger rebalance: the right READ is missing")

        monkeypatch.setattr(FakeGroup, "trigger_rebalance", refuse)
        bench.group.lag = 500_000
        bench.desired(3)
        await bench.run(lambda: bench.record() is not None)
        bench.server.remove("services", NAMESPACE, NAME)
        await bench.run(lambda: bench.server.get("services", NAMESPACE, NAME) is not None)
        assert (bench.granted(), bench.wrongs) == (4, [])

    on_a_bench(play)


def test_a_rebalance_that_brokers_refuse_is_tried_again_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(bench: Bench) -> None:
        asked: list[float] = []

        async def refuse(*_: object) -> None:
            asked.append(bench.clock.monotonic())
            raise KafkaStepError("group word-count: trigger rebalance: the right READ is missing")

        with monkeypatch.context() as patch:
            patch.setattr(FakeGroup, "trigger_rebalance", refuse)
            bench.group.lag = 500_000
            bench.desired(3)
            await bench.run(lambda: len(asked) == 6, 200)
            pauses = [round(later - earlier) for earlier, later in itertools.pairwise(asked)]
            assert pauses == [2, 4, 8, 16, 32]
            await bench.make_pass()
            held = next(one for one in bench.status()["conditions"] if one["type"] == "ScaleDownHeld")
            assert "A rebalance trigger failed 6 times: group word-count" in held["message"]
        bench.group.lag = 0
        await bench.run(lambda: bench.is_settled(3), 400)

    on_a_bench(play)


@pytest.mark.guarantee(3)
def test_a_plan_ends_between_two_calls_where_a_raise_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(bench: Bench) -> None:
        calls = watch_evictions(monkeypatch)
        facts, before, never = await gathered(bench), len(bench.server.writes), asyncio.Event().wait
        plan = (*EVICTIONS, OpenBudget(reason=Reason.StepClosed))
        with pytest.raises(RaisePendingError):
            await bench.applier.apply(replace(facts, raises=RaiseWatch(lambda: bool(calls), never)), plan)
        assert (len(calls), len(bench.server.writes)) == (1, before)

    on_a_bench(play)


@pytest.mark.guarantee(3)
def test_a_raise_that_is_received_while_a_plan_is_made_is_the_next_write() -> None:
    async def play(bench: Bench) -> None:
        risen: list[Write] = []

        def rise(write: Write) -> None:
            # Closing the budget is the last write before the removal.
            if write.plural == "poddisruptionbudgets" and not risen:
                risen.append(write)
                bench.desired(6)
                bench.applications.remember_resource(KEY, bench.server.get("streamapps", NAMESPACE, NAME) or {})

        bench.desired(3)
        await bench.run(lambda: bench.record() is not None)
        bench.server.fault = rise
        application, again = bench.applications.find(KEY), None
        assert application is not None
        assert application.watch is not None
        while not risen:
            bench.clock.move(2)
            await application.watch.poll()
            again = await bench.reconciler.reconcile(KEY)
        assert (again, bench.server.writes[-1]) == (0, risen[0])
        await bench.reconciler.reconcile(KEY)
        assert bench.granted() == 6

    on_a_bench(play)


@pytest.mark.guarantee(3)
@pytest.mark.parametrize("again", [6, 4], ids=["more pods are desired", "the pod is desired again"])
def test_a_raise_that_is_received_while_a_removal_reads_the_pods_again_keeps_it_from_being_sent(
    again: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(bench: Bench) -> None:
        sound, risen = Applier._check_again, list[int]()

        async def check_again(self: Applier, facts: Gathered, to_replicas: int | None) -> None:
            await sound(self, facts, to_replicas)
            if not risen:
                risen.append(bench.granted())
                bench.desired(again)
                bench.applications.remember_resource(KEY, bench.server.get("streamapps", NAMESPACE, NAME) or {})

        monkeypatch.setattr(Applier, "_check_again", check_again)
        bench.desired(3)
        await bench.run(lambda: bool(risen))
        assert (risen, bench.granted()) == ([4], 4)
        await bench.make_pass()
        assert (bench.granted(), bench.wrongs) == (again, [])

    on_a_bench(play)


def desire_later(bench: Bench, replicas: int, is_time: Callable[[Json, Json], bool]) -> None:
    """Raise the desired replicas in the instant of a write on the StatefulSet, before and after which this is so."""

    def see(plural: str, body: Json, before: Json | None) -> None:
        if plural == "statefulsets" and before is not None and is_time(before, body):
            bench.server.changed.remove(see)
            bench.desired(replicas)
            bench.applications.remember_resource(KEY, bench.server.get("streamapps", NAMESPACE, NAME) or {})

    bench.server.changed.append(see)


def events(bench: Bench) -> list[str]:
    """The reasons of all Events, in their order."""
    return [str(stored.body["reason"]) for (plural, _, _), stored in bench.server.objects.items() if plural == "events"]


@pytest.mark.guarantee(8)
def test_a_raise_that_another_raise_overtakes_is_reported_with_the_hold_that_it_cancelled() -> None:
    async def play(bench: Bench) -> None:
        bench.group.lag = 500_000
        bench.desired(3)
        await bench.run(lambda: bench.record() is not None)
        desire_later(bench, 7, lambda _, after: after["spec"]["replicas"] == 5)
        bench.desired(5)
        for granted in (5, 7):
            await bench.make_pass()
            assert bench.granted() == granted
        assert events(bench)[-3:] == ["ScaledUp", "HoldCancelled", "ScaledUp"]
        await bench.make_pass()
        assert events(bench)[-1] == "ScaledUp"

    on_a_bench(play)


@pytest.mark.guarantee(8)
def test_a_step_that_ends_in_a_pass_which_a_raise_ends_is_reported_by_the_next_pass() -> None:
    def ends_a_step(before: Json, after: Json) -> bool:
        return HOLD_RECORD in before["metadata"]["annotations"] and HOLD_RECORD not in after["metadata"]["annotations"]

    async def passes_to_its_end(bench: Bench) -> int:
        bench.desired(3)
        await bench.run(lambda: bench.granted() == 3)
        for number in range(60):
            if bench.record() is None:
                return number
            bench.clock.move(2)
            await bench.make_pass()
        raise AssertionError(bench.status())

    async def play(bench: Bench) -> None:
        async with a_bench(4) as another:
            last = await passes_to_its_end(another)
        bench.desired(3)
        await bench.run(lambda: bench.granted() == 3)
        for number in range(last):
            bench.clock.move(2)
            if number == last - 1:
                bench.desired(5)
                desire_later(bench, 7, ends_a_step)
            await bench.make_pass()
        assert (bench.record(), bench.status().get("lastSteps")) == (None, [])
        await bench.make_pass()
        assert bench.granted() == 7
        assert [(one["from"], one["to"]) for one in bench.status()["lastSteps"]] == [(4, 3)]
        assert "StepCompleted" in events(bench)

    on_a_bench(play)


@pytest.mark.guarantee(8)
def test_what_brokers_refuse_keeps_no_event_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hold record is written, so no later pass finds the hold new; and the right may be missing for good."""

    async def play(bench: Bench) -> None:
        async def refuse(*_: object) -> None:
            raise KafkaStepError("group word-count: trigger rebalance: the right READ is missing")

        bench.group.lag = 500_000
        await bench.group.trigger_rebalance(next(iter(bench.group.members)))
        await bench.make_pass()
        monkeypatch.setattr(FakeGroup, "trigger_rebalance", refuse)
        bench.clock.move(60)
        bench.desired(3)
        await bench.run(lambda: bench.record() is not None)
        assert bench.applications.get(KEY, bench.group.app_uid).memory.failure is not None
        assert events(bench).count("HoldStarted") == 1
        for _ in range(40):
            bench.clock.move(20)
            await bench.make_pass()
        assert events(bench).count("HoldStarted") == 1

    on_a_bench(play)


@pytest.mark.guarantee(8)
def test_the_events_of_a_pass_that_the_api_server_ends_after_its_write_are_sent_with_the_next_report() -> None:
    async def play(bench: Bench) -> None:
        bench.group.lag = 500_000
        bench.server.remove("services", NAMESPACE, NAME)
        bench.clock.move(600)
        bench.server.fault = lambda write: "busy" if write.plural == "services" else None
        bench.desired(3)
        for _ in range(5):
            bench.clock.move(2)
            await bench.make_pass()
        assert (bench.record() is not None, events(bench).count("HoldStarted")) == (True, 0)
        bench.server.fault = lambda _: None
        await bench.run(lambda: "HoldStarted" in events(bench))
        assert events(bench).count("HoldStarted") == 1

    on_a_bench(play)
