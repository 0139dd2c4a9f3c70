"""The stabilization window goes on where another process takes over: the API server dates `spec.replicas`."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from streamapp.kube.objects.from_json import replicas_written_at
from tests.controller.doubles.bench import Bench, a_bench

Json = dict[str, Any]
WINDOW_SECONDS = 3600
BETWEEN_STARTS = 600


def an_entry(date: str | None, *fields: str) -> Json:
    """Of `managedFields`: a manager that owns these fields of the spec."""
    entry = {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {f"f:{name}": {} for name in fields}}}
    return entry if date is None else {**entry, "time": date}


def date_writes(bench: Bench) -> list[datetime]:
    """Have the API server date each write of the replicas; give the dates."""
    dates: list[datetime] = []

    def date(plural: str, body: Json, before: Json | None) -> None:
        if plural == "streamapps" and body:
            if before is None or before["spec"]["replicas"] != body["spec"]["replicas"]:
                dates.append(bench.clock.now())
            if dates:
                body["metadata"]["managedFields"].append(an_entry(dates[-1].isoformat(), "replicas"))

    bench.server.changed.append(date)
    return dates


def test_a_window_passes_although_each_process_ends_long_before_it_does() -> None:
    async def play(bench: Bench) -> None:
        dates = date_writes(bench)
        bench.desired(3, scaleDown={"stabilizationWindow": f"{WINDOW_SECONDS}s"})
        while bench.granted() == 4 and bench.clock.now().timestamp() < dates[0].timestamp() + 2 * WINDOW_SECONDS:
            await bench.restart()
            for _ in range(20):
                bench.clock.move(2)
                await bench.make_pass()
            bench.clock.move(BETWEEN_STARTS)
        took = bench.clock.now() - dates[0]
        assert bench.granted() == 3
        assert WINDOW_SECONDS < took.total_seconds() < WINDOW_SECONDS + 3 * BETWEEN_STARTS
        assert (len(dates), bench.wrongs) == (1, [])

    async def run() -> None:
        async with a_bench(4) as bench:
            await play(bench)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], None),
        ([an_entry("2026-01-01T00:00:00Z", "template")], None),
        ([an_entry("2026-01-01T00:00:00Z", "replicas"), an_entry("2026-01-05T00:00:00Z", "template")], 1),
        ([an_entry("2026-01-03T00:00:00Z", "replicas"), an_entry("2026-01-02T00:00:00Z", "replicas")], 3),
        ([an_entry("2026-01-03T00:00:00Z", "replicas"), an_entry(None, "replicas")], None),
        ([an_entry("2026-01-03T00:00:00Z", "replicas"), an_entry("0000-01-01T00:00:00Z", "replicas")], None),
        ([an_entry("10000-01-01T11:59:59Z", "replicas")], None),
    ],
    ids=["nothing", "another field", "one owner", "two owners", "an owner without a date", "the year 0", "too late"],
)
def test_the_latest_owner_of_the_replicas_dates_them(entries: list[Json], expected: int | None) -> None:
    date = None if expected is None else datetime(2026, 1, expected, tzinfo=UTC)
    assert replicas_written_at({"metadata": {"managedFields": entries}}) == date
