"""Each query of the dashboard gives data from a real Prometheus while the operator does what the panel shows."""

import asyncio
import math
from pathlib import Path

import pytest

from streamapp.kube.client.kinds import STATEFUL_SETS
from tests.alerts.prometheus import Prometheus, dashboard, prometheus
from tests.alerts.stage import PODS, Stage, a_stage, scraped
from tests.controller.doubles.fake_pods import NAMESPACE

pytestmark = [pytest.mark.alerts, pytest.mark.timeout(600)]
EVERYTHING = {"$namespace": ".*", "$app": ".*"}
"""What Grafana writes for the variables where all is chosen."""
ZERO_WHILE_WELL = {"Age of the oldest StreamApp in the work queue"}
"""Panels that rise above zero only in the fault of an alert, StreamAppOperatorStuck."""


def test_every_panel_shows_what_the_operator_does(tmp_path: Path) -> None:
    async def main() -> list[str]:
        async with a_stage(tmp_path, "one", "two") as stage, prometheus(tmp_path, stage.ports, {}) as server:
            await scraped(stage, server)
            await removes_a_pod(stage)
            assert await server.firing() == []
            await meets_faults(stage)
            await scraped(stage, server)
            await variables_have_values(server)
            return [wrong for panel in dashboard()["panels"] for wrong in await empty(server, panel)]

    assert asyncio.run(main()) == []


async def removes_a_pod(stage: Stage) -> None:
    """Hold a scale-down for copies that are behind, and make it when they have caught up."""
    stage.group.lag = 900_000
    await stage.group.trigger_rebalance(next(iter(stage.group.members)))
    stage.desire(PODS - 1)
    await stage.them.until("the hold is reported", lambda: stage.conditions().get("ScaleDownHeld") == "True")
    await asyncio.sleep(20)
    stage.group.lag = 0
    await stage.them.until("the pod is removed", lambda: stage.is_well(PODS - 1), 180)


async def meets_faults(stage: Stage) -> None:
    """Refuse a raise for a while, make a StreamApp with the same application ID, and close the brokers' port."""
    stage.server.refuse_write = lambda one: (500, "the test refuses") if one.plural == STATEFUL_SETS.plural else None
    stage.desire(PODS)
    await asyncio.sleep(12)
    stage.server.refuse_write = lambda _: None
    await stage.them.until("the raise is made", lambda: stage.is_well(PODS), 120)
    stage.add("rival")
    await stage.broker.close()
    await stage.them.until("the brokers are missed", lambda: stage.conditions()["KafkaReachable"] == "False")
    await asyncio.sleep(3)


async def variables_have_values(server: Prometheus) -> None:
    """The lists from which a user chooses are those of the application."""
    queries = [one["definition"] for one in dashboard()["templating"]["list"] if "definition" in one]
    assert len(queries) == 2
    for query in queries:
        selector, label = query.removeprefix("label_values(").removesuffix(")").rsplit(", ", 1)
        values = await server.get(f"label/{label}/values", **{"match[]": _chosen(selector)})
        assert values == {"namespace": [NAMESPACE], "name": ["counter", "rival"]}[label]


async def empty(server: Prometheus, panel: dict[str, object]) -> list[str]:
    """Targets of a panel that never showed a number, or only zeros."""
    targets = panel["targets"]
    assert isinstance(targets, list)
    found = []
    for target in targets:
        samples = await server.query(f"max_over_time(({_chosen(target['expr'])})[10m:1s])")
        values = [float(one["value"][1]) for one in samples]
        numbers = [value for value in values if math.isfinite(value)]
        if not numbers or (max(numbers) <= 0 and panel["title"] not in ZERO_WHILE_WELL):
            found.append(f"{panel['title']}: {target['expr']}: {values}")
    return found


def _chosen(expression: str) -> str:
    for variable, value in EVERYTHING.items():
        expression = expression.replace(variable, value)
    return expression
