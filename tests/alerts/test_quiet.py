"""What looks like the fault of an alert and is none: the alert does not fire; and what only Prometheus can judge."""

import asyncio
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from lab.settings import Versions
from tests.alerts.cron_job import CronJob
from tests.alerts.prometheus import Prometheus, dashboard, programs, prometheus, rules
from tests.alerts.proofs import PROOFS, Scene
from tests.alerts.stage import a_stage, scraped
from tests.chart.rendering import NAMESPACE

pytestmark = [pytest.mark.alerts, pytest.mark.timeout(600)]
LONG_ENOUGH = 15
"""Seconds of silence after the fault; an alert fires within a few."""


def check_rules(path: Path) -> "subprocess.CompletedProcess[str]":
    """What promtool says of a file."""
    command = (programs() / "promtool", "check", "rules", path)
    return subprocess.run(command, capture_output=True, text=True, check=False)


async def named(server: Prometheus) -> set[str]:
    """The alerts that fire."""
    return {labels["alertname"] for labels in await server.firing()}


def test_promtool_takes_the_rules_and_every_query_of_the_dashboard(tmp_path: Path) -> None:
    queries = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
    recorded = [{"record": f"panel:query{number}", "expr": query} for number, query in enumerate(queries)]
    groups = [{"name": "alerts", "rules": list(rules())}, {"name": "panels", "rules": recorded}]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    checked = check_rules(tmp_path / "rules.yaml")
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stdout
    assert f"{len(rules()) + len(queries)} rules found" in checked.stdout


def test_a_broken_rule_is_seen(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("groups: [{name: one, rules: [{alert: Wrong, expr: 'sum by (a (b)'}]}]")
    checked = check_rules(tmp_path / "rules.yaml")
    assert checked.returncode != 0


def test_an_old_hold_whose_lag_falls_alarms_nobody(tmp_path: Path) -> None:
    (proof,) = PROOFS["StreamAppHoldWithoutProgress"]

    async def main() -> None:
        async with a_stage(tmp_path, "one") as stage:

            async def catch_up() -> None:
                while True:
                    await asyncio.sleep(1)
                    stage.group.lag = max(100_000, stage.group.lag - 10_000)
                    await stage.group.trigger_rebalance(next(iter(stage.group.members)))

            await proof.fault(Scene(stage, CronJob()))
            progress = asyncio.create_task(catch_up())
            await stage.them.until("the operator works", stage.server.leader)
            async with prometheus(tmp_path, stage.ports, {}) as server:
                await scraped(stage, server)
                await server.until("the lag falls", lambda: server.query(FALLS), 60)
                await asyncio.sleep(LONG_ENOUGH)
                assert await server.query("streamapp_hold_seconds > 3600") != []
                assert "StreamAppHoldWithoutProgress" not in await named(server)
            progress.cancel()

    asyncio.run(main())


FALLS = "delta(streamapp_remaining_lag_records[30m]) < 0"


def test_a_suspended_cron_job_alarms_nobody(tmp_path: Path) -> None:
    async def main() -> None:
        job = CronJob(succeeded_ago=timedelta(days=5), is_suspended=True)
        async with job.serving() as port, prometheus(tmp_path, {}, {"kube-state-metrics": port}) as server:
            await server.until("it is scraped", lambda: server.query("kube_cronjob_spec_suspend == 1"), 30)
            await asyncio.sleep(LONG_ENOUGH)
            assert await named(server) == {"StreamAppNoLeader"}

    asyncio.run(main())


def test_an_installation_that_was_never_scraped_has_no_leader(tmp_path: Path) -> None:
    async def main() -> None:
        async with prometheus(tmp_path, {}, {}) as server:

            async def fires() -> bool:
                return any(one.get("namespace") == NAMESPACE for one in await server.firing())

            await server.until("the alert fires", fires, 30)
            assert await named(server) == {"StreamAppNoLeader"}
            assert (await server.get("status/buildinfo"))["version"] == Versions.read().prometheus

    asyncio.run(main())
