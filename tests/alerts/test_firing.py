"""Each alert of the chart fires in a real Prometheus when its fault is made, and at no other time.

A real operator is scraped over HTTP, and the rules are those that Helm renders. Before a fault no alert at all fires.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.alerts.cron_job import CronJob
from tests.alerts.expressions import labels_in_summary
from tests.alerts.prometheus import Prometheus, prometheus, rules
from tests.alerts.proofs import PROOFS, Proof, Scene
from tests.alerts.stage import a_stage, scraped
from tests.chart.rendering import Json
from tests.chart.test_files import ALERTS

pytestmark = pytest.mark.alerts
KUBE_STATE_METRICS = "kube-state-metrics"
CASES = [(one["alert"], index) for one in ALERTS for index in range(max(1, len(PROOFS.get(one["alert"], ()))))]


@asynccontextmanager
async def watched(folder: Path, proof: Proof) -> AsyncIterator[tuple[Scene, Prometheus]]:
    """Give a healthy operator that Prometheus has scraped for a while."""
    cron_job = CronJob()
    async with (
        a_stage(folder, *proof.pods, **proof.settings) as stage,
        cron_job.serving() as port,
        prometheus(folder, stage.ports, {KUBE_STATE_METRICS: port}) as server,
    ):
        await scraped(stage, server)
        yield Scene(stage, cron_job), server


def named_in(labels: Json) -> bool:
    """Whether an alert has every label that its text names."""
    (rule,) = [rule for rule in rules() if rule["alert"] == labels["alertname"]]
    return all(labels.get(name) for name in labels_in_summary(rule["annotations"]["summary"]))


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("alert", "index"), CASES, ids=[f"{name}-{index}" for name, index in CASES])
def test_the_alert_fires_in_its_fault_and_at_no_other_time(alert: str, index: int, tmp_path: Path) -> None:
    proof = PROOFS[alert][index]

    async def main() -> None:
        async with watched(tmp_path, proof) as (scene, server):

            async def fires() -> bool:
                named = [labels for labels in await server.firing() if labels["alertname"] == alert]
                return any(proof.labels.items() <= labels.items() for labels in named)

            async def is_resolved() -> bool:
                return not await fires()

            assert await server.firing() == []
            await proof.fault(scene)
            await server.until(f"{alert} fires", fires, proof.seconds)
            assert [one for one in await server.firing() if one["alertname"] == alert and not named_in(one)] == []
            for part in proof.parts:
                await server.until(f"{part} gives something", lambda: server.query(part), 180)  # noqa: B023
            if proof.mend is not None:
                await proof.mend(scene)
                await server.until(f"{alert} is resolved", is_resolved, 90)

    asyncio.run(main())


def test_the_parts_that_are_proven_stand_in_their_expressions() -> None:
    expressions = {rule["alert"]: rule["expr"] for rule in rules()}
    parts = [(name, part) for name, proofs in PROOFS.items() for proof in proofs for part in proof.parts]
    assert len(parts) > 1
    assert [part for name, part in parts if part not in expressions[name]] == []
