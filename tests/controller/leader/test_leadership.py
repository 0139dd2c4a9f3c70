"""Two replicas, one application: the one that leads works, and whoever follows goes on where the record is."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import pytest
from kubernetes.aio.client.configuration import Configuration

from streamapp.controller.apps.apps import Application
from streamapp.controller.apps.memory import Memory
from streamapp.controller.apps.raise_watch import RaiseWatch
from streamapp.controller.leader.leadership import Alone, NotLeadingError, without_lease
from streamapp.controller.lifecycle import _leadership
from streamapp.controller.metrics import Metrics
from streamapp.controller.reconcile.apply import Applier
from streamapp.controller.settings import Settings
from streamapp.core.actions.decision import Announce, CloseBudget, Evict, OpenBudget, RestartPod, Step, TriggerRebalance
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import UnavailableError
from streamapp.kube.client.kinds import STREAM_APPS, Key
from tests.controller.doubles.bench import INSTALLATION, KEY, NAME, Bench, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE
from tests.controller.leader.replicas import LEASE, Replica, Replicas, with_replicas
from tests.controller.test_fault_sweep import at_write, died_or_settled, writes_of_a_step

if TYPE_CHECKING:
    from streamapp.controller.reconcile.gather import Gathered

Story = Callable[[Bench, Replicas, Replica, Replica], Awaitable[None]]


def play(story: Story, **spec: Any) -> None:
    """Play it on a bench with four pods."""

    async def main() -> None:
        async with a_bench(4, **spec) as bench:
            await with_replicas(bench, partial(story, bench))

    asyncio.run(main())


def removals(bench: Bench) -> list[tuple[int, int]]:
    """The steps by which the StatefulSet was made smaller."""
    sizes = [
        change.body["spec"]["replicas"]
        for change in bench.server.history
        if change.identity[0] == "statefulsets" and change.body is not None
    ]
    return [(before, after) for before, after in pairwise(sizes) if after < before]


def term(bench: Bench) -> int:
    """The number of the term in the hold record; 0 where there is none."""
    record = bench.record()
    return 0 if record is None else int(json.loads(record)["epoch"][0])


def test_who_stands_by_asks_for_nothing_but_the_lease() -> None:
    async def story(bench: Bench, them: Replicas, one: Replica, two: Replica) -> None:
        assert "streamapp_leader 1.0" in one.operator.metrics.text().decode()
        assert one.operator.health.unready() == "cache not synced", "a leader is ready when it has listed, as ever"
        one.is_dead = True  # so that all reads are those of the other one
        before = len(bench.server.reads)
        for _ in range(5):
            await them.round()
        assert {path.split("?")[0].rsplit("/", 2)[1] for path in bench.server.reads[before:]} == {"leases"}
        assert (two.operator.health.unready(), two.operator.health.faults()) == ("", [])
        shown = two.operator.metrics.text().decode()
        assert "streamapp_leader 0.0" in shown
        assert "streamapp_lease_transitions 1.0" in shown

    play(story)


def test_a_leader_that_stops_in_mid_hold_is_followed_at_once_by_one_that_ends_the_same_hold() -> None:
    async def story(bench: Bench, them: Replicas, one: Replica, two: Replica) -> None:
        bench.desired(3, scaleDown={"stabilizationWindow": "20s"})
        await them.until(lambda: term(bench) == 1)
        held = json.loads(bench.record() or "{}")["hold"]["id"]
        await one.stop()
        assert await them.until(lambda: term(bench) == 2) < 6
        assert json.loads(bench.record() or "{}")["hold"]["id"] == held
        await them.until(lambda: bench.is_settled(3))
        assert (removals(bench), bench.wrongs, bench.group.wrongs) == ([(4, 3)], [], [])
        assert (one.losses, two.losses) == (0, 0)

    play(story)


@pytest.mark.guarantee(2)
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["before", "after"])
def test_a_leader_that_dies_at_any_write_is_followed_by_one_that_loses_and_repeats_no_step(kind: str) -> None:
    async def story(number: int, bench: Bench, them: Replicas, one: Replica, two: Replica) -> None:
        died: list[int] = []

        def die() -> str:
            died.append(1)
            one.is_dead = True
            return kind

        # Renewals are writes too: so there are more deaths than steps.
        at_write(number, bench, die)
        bench.desired(3)
        await them.until(partial(died_or_settled, died, bench, 3))
        assert await them.until(two.elector.leads, 30) < 20
        await them.until(lambda: bench.is_settled(3))
        assert (removals(bench), bench.wrongs, bench.group.wrongs) == ([(4, 3)], [], [])

    for number in range(1, writes_of_a_step() + 4, 2):
        play(partial(story, number))


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("asks_again", [True, False])
def test_a_leader_that_wakes_up_right_before_a_removal_sends_nothing_any_more(*, asks_again: bool) -> None:
    async def story(bench: Bench, them: Replicas, one: Replica, two: Replica) -> None:
        confirm, make_pass = one.elector.confirm, one.operator.make_pass
        woke_at: list[int] = []
        ended_at: list[int] = []

        async def stand_still() -> None:
            one.is_frozen = True
            await them.until(two.elector.leads, 60)
            woke_at.append(len(bench.server.writes))
            if asks_again:
                await confirm()

        async def counted() -> bool:
            is_whole = await make_pass()
            ended_at.append(len(bench.server.writes))
            return is_whole

        one.elector.confirm = stand_still  # type: ignore[method-assign]
        one.operator.make_pass = counted  # type: ignore[method-assign]
        bench.desired(3)
        await them.until(lambda: bool(woke_at))
        assert ended_at[-1] == woke_at[0]
        assert (bench.granted(), one.losses) == (4, 1)
        await them.until(lambda: bench.is_settled(3))
        assert (removals(bench), bench.wrongs, bench.group.wrongs) == ([(4, 3)], [], [])

    play(story)


@pytest.mark.guarantee(2)
def test_a_term_that_the_api_server_knows_to_be_over_ends_before_a_removal_is_sent() -> None:
    async def story(bench: Bench, them: Replicas, one: Replica, _: Replica) -> None:
        confirm = one.elector.confirm

        async def another_has_it() -> None:
            lease = bench.server.get("leases", LEASE.namespace, LEASE.name)
            assert lease is not None
            bench.server.put("leases", {**lease, "spec": {**lease["spec"], "holderIdentity": "somebody"}})
            assert one.elector.leads(), "by its clock it does"
            await confirm()

        one.elector.confirm = another_has_it  # type: ignore[method-assign]
        bench.desired(3)
        await them.until(lambda: one.losses == 1, 60)
        assert (removals(bench), bench.granted()) == ([], 4)

    play(story)


@dataclass(frozen=True)
class OfKey:
    """As much of what was gathered as may be asked for before a step."""

    key: Key
    application: Application = field(default_factory=lambda: Application(Memory("uid")))
    raises: RaiseWatch = field(default_factory=lambda: RaiseWatch(lambda: False, asyncio.Event().wait))


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("kind", [RestartPod, Evict, TriggerRebalance, Announce, CloseBudget, OpenBudget])
def test_no_step_is_begun_by_a_process_that_does_not_lead(kind: type[Step]) -> None:
    class Over(Alone):
        def check(self) -> None:
            raise NotLeadingError("Lease", "it is over", "another goes on")

    async def main() -> None:
        client = cast("KubeClient", None)
        applier = Applier(client, INSTALLATION, Metrics(), leadership=Over())
        gathered = cast("Gathered", OfKey(KEY))
        with pytest.raises(NotLeadingError):
            await applier.apply(gathered, (object.__new__(kind),))

    asyncio.run(main())


@pytest.mark.guarantee(2)
def test_a_process_without_a_lease_has_a_number_of_its_own() -> None:
    """By one number of all, the budget that a process before it opened, or opens late, would be its own."""

    async def number() -> int:
        async with _leadership(Settings(), lambda *_: None) as leadership:
            return leadership.transitions

    now, second = datetime.now(UTC), timedelta(seconds=1)
    assert abs(asyncio.run(number()) - without_lease(now).transitions) < 60
    assert without_lease(now).transitions != without_lease(now + second).transitions
    late = datetime(2040, 1, 1, tzinfo=UTC)
    assert 0 < without_lease(late).transitions < 2**31


@pytest.mark.guarantee(2)
def test_the_client_asks_when_it_is_connected_and_sends_no_write_that_is_not_allowed() -> None:
    async def main() -> None:
        async with a_bench(2) as bench:
            asked: list[str] = []

            def refuse() -> None:
                asked.append("asked")
                raise NotLeadingError("Lease", "it is over", "another goes on")

            client = KubeClient(Configuration(host=bench.url), deadline_seconds=5, may_write=refuse)
            app, before = await client.get(STREAM_APPS, NAMESPACE, NAME), len(bench.server.writes)
            metadata = app["metadata"]
            own = {name: metadata[name] for name in ("namespace", "name")}
            with pytest.raises(NotLeadingError):
                await client.apply(STREAM_APPS, {"metadata": own})
            with pytest.raises(NotLeadingError):
                await client.create(STREAM_APPS, {"metadata": own})
            with pytest.raises(NotLeadingError):
                await client.delete(STREAM_APPS, **own, uid=metadata["uid"], resource_version="1")
            assert (len(asked), len(bench.server.writes)) == (3, before)
            await client.close()
            nowhere = KubeClient(Configuration(host="http://127.0.0.1:9"), deadline_seconds=5, may_write=refuse)
            with pytest.raises(UnavailableError):
                await nowhere.apply(STREAM_APPS, {"metadata": own})
            assert len(asked) == 3
            await nowhere.close()

    asyncio.run(main())
