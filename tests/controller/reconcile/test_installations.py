"""Two installations of the operator over the same namespaces: one serves a StreamApp, the other is silent."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
from structlog.typing import EventDict

from streamapp.api.names import OPERATOR_LABEL
from streamapp.controller.apps.apps import Applications
from streamapp.controller.apps.group_poller import PollIntervals
from streamapp.controller.metrics import Metrics
from streamapp.controller.reconcile.apply import Applier
from streamapp.controller.reconcile.gather import Gatherer
from streamapp.controller.reconcile.reconciler import Reconciler
from streamapp.controller.reconcile.report import Reporter
from tests.controller.doubles.bench import INSTALLATION, KEY, NAME, NEVER, Bench, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE
from tests.kube.object_store import clone

OTHER = replace(INSTALLATION, name="other")


def on_a_bench(play: Callable[[Bench, Reconciler], Coroutine[Any, Any, None]]) -> None:
    """Play something on a bench at rest, with the passes of another installation."""

    async def run() -> None:
        async with a_bench(4) as bench:
            applications = Applications(
                bench._connect, PollIntervals(NEVER, NEVER, NEVER), lambda _: None, bench.clock.now
            )
            gatherer = Gatherer(bench.client, applications, OTHER, bench.clock.now, bench.clock.monotonic)
            applier = Applier(bench.client, OTHER, Metrics(), bench.clock.monotonic)
            other = Reconciler(gatherer, applier, Reporter(bench.client, Metrics(), "other"), applications)
            await play(bench, other)
            applications.close()

    asyncio.run(run())


def label(bench: Bench, plural: str, installation: str) -> None:
    """Say whose an object is."""
    live = clone(bench.server.get(plural, NAMESPACE, NAME) or {})
    live["metadata"]["labels"] = {**live["metadata"].get("labels", {}), OPERATOR_LABEL: installation}
    bench.server.put(plural, live)


@pytest.mark.guarantee(8)
def test_of_two_installations_one_serves_a_streamapp_and_the_other_writes_nothing(log_lines: list[EventDict]) -> None:
    async def play(bench: Bench, other: Reconciler) -> None:
        before = len(bench.server.writes)
        for _ in range(20):
            bench.clock.move(2)
            assert await bench.make_pass()
            assert await other.reconcile(KEY) == 60
        assert bench.server.writes[before:] == []
        assert bench.condition("Stalled")[0] == "False"
        assert len(bench.wirings) == 1, "and asks no broker"
        bench.desired(3)
        for _ in range(120):
            bench.clock.move(2)
            await bench.make_pass()
            await other.reconcile(KEY)
        assert bench.is_settled(3)

    on_a_bench(play)
    (line,) = (line for line in log_lines if line["event"] == "streamapp of another installation")
    assert (line["app"], line["installation"]) == (str(KEY), INSTALLATION.name)


def test_a_streamapp_that_names_another_installation_is_left_alone_and_served_there() -> None:
    async def play(bench: Bench, other: Reconciler) -> None:
        del bench.server.objects["statefulsets", NAMESPACE, NAME]  # its pods are left out of this
        label(bench, "streamapps", OTHER.name)
        before = len(bench.server.writes)
        bench.clock.move(2)
        await bench.make_pass()
        assert bench.server.writes[before:] == []
        await other.reconcile(KEY)
        assert bench.statefulset()["metadata"]["labels"][OPERATOR_LABEL] == OTHER.name

    on_a_bench(play)


def test_a_streamapp_is_handed_over_by_the_labels_of_both_objects() -> None:
    async def play(bench: Bench, other: Reconciler) -> None:
        label(bench, "streamapps", OTHER.name)
        before = len(bench.server.writes)
        for _ in range(2):
            bench.clock.move(2)
            await bench.make_pass()
            await other.reconcile(KEY)
        assert bench.server.writes[before:] == [], "half handed over: nobody acts"
        label(bench, "statefulsets", OTHER.name)
        bench.desired(6)
        await bench.make_pass()
        assert bench.granted() == 4
        await other.reconcile(KEY)
        assert bench.granted() == 6

    on_a_bench(play)


def test_a_statefulset_that_names_no_installation_is_still_reported() -> None:
    async def play(bench: Bench, _: Reconciler) -> None:
        live = clone(bench.statefulset())
        del live["metadata"]["labels"][OPERATOR_LABEL]
        bench.server.put("statefulsets", live)
        bench.clock.move(2)
        await bench.make_pass()
        assert bench.condition("Stalled") == ("True", "ForeignStatefulSet")

    on_a_bench(play)
