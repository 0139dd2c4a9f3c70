"""The stabilization window goes on where another process takes over, and begins anew where a change was missed.

The API server dates `spec.replicas`, but no write through `scale`: there the status says since when.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from streamapp.api.names import HOLD
from streamapp.kube.objects.from_json import replicas_written_at
from tests.controller.doubles.bench import NAME, Bench, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE

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


@pytest.mark.parametrize("is_dated", [True, False], ids=["a write of the object", "a write through scale"])
def test_a_window_passes_although_each_process_ends_long_before_it_does(*, is_dated: bool) -> None:
    async def play(bench: Bench) -> None:
        dates, began_at = date_writes(bench) if is_dated else [], bench.clock.now()
        bench.desired(3, scaleDown={"stabilizationWindow": f"{WINDOW_SECONDS}s"})
        while bench.granted() == 4 and seconds_since(bench, began_at) < 2 * WINDOW_SECONDS:
            is_over = seconds_since(bench, began_at) > WINDOW_SECONDS
            await live_for_a_while(bench, 20 if is_over else 3)
            bench.clock.move(BETWEEN_STARTS)
        assert bench.granted() == 3
        assert WINDOW_SECONDS < seconds_since(bench, began_at) < WINDOW_SECONDS + 3 * BETWEEN_STARTS
        assert (len(dates), bench.wrongs) == (int(is_dated), [])

    run(play)


def test_a_window_begins_anew_where_the_number_changed_while_nobody_looked() -> None:
    async def play(bench: Bench) -> None:
        bench.desired(2, scaleDown={"stabilizationWindow": f"{WINDOW_SECONDS}s"})
        await live_for_a_while(bench)
        bench.clock.move(WINDOW_SECONDS)
        bench.desired(4)
        bench.desired(2)
        changed_at = bench.clock.now()
        await live_for_a_while(bench, 20)
        assert bench.granted() == 4
        assert datetime.fromisoformat(noted(bench)["since"]) >= changed_at

    run(play)


@pytest.mark.guarantee(8)
def test_a_window_begins_anew_where_a_process_that_looks_on_missed_a_raise() -> None:
    async def play(bench: Bench) -> None:
        bench.desired(2, scaleDown={"stabilizationWindow": f"{WINDOW_SECONDS}s"})
        await bench.make_pass()
        bench.clock.move(WINDOW_SECONDS - 60)
        bench.desired(4)
        bench.desired(2)
        changed_at = bench.clock.now()
        await look_on(bench, 120)
        assert (bench.granted(), bench.condition("ScaleDownHeld")) == (4, ("True", "Stabilizing"))
        assert datetime.fromisoformat(noted(bench)["since"]) >= changed_at
        bench.clock.move(WINDOW_SECONDS)
        await look_on(bench, 120)
        assert (bench.granted(), bench.wrongs) == (2, [])

    run(play)


@pytest.mark.guarantee(8)
def test_a_hold_of_the_user_starts_anew_where_a_process_that_looks_on_missed_a_raise() -> None:
    async def play(bench: Bench) -> None:
        hold(bench)
        bench.desired(2)
        await look_on(bench, 60)
        bench.desired(4)
        bench.desired(2)
        changed_at = bench.clock.now().replace(microsecond=0)
        await look_on(bench, 60)
        assert bench.condition("ScaleDownHeld") == ("True", "HeldByUser")
        assert datetime.fromisoformat(bench.status()["scaleDown"]["since"]) >= changed_at

    run(play)


def test_what_the_status_says_of_the_window_changes_with_the_spec_alone() -> None:
    async def play(bench: Bench) -> None:
        bench.desired(3, scaleDown={"stabilizationWindow": f"{WINDOW_SECONDS}s"})
        await live_for_a_while(bench)
        written = noted(bench)
        await live_for_a_while(bench)
        assert noted(bench) == written
        bench.desired(3, scaleDown={"stabilizationWindow": f"{2 * WINDOW_SECONDS}s"})
        await bench.make_pass()
        assert noted(bench) == {**written, "generation": written["generation"] + 1}

    run(play)


async def live_for_a_while(bench: Bench, passes: int = 3) -> None:
    """Have a new process make some passes; a pod goes after twenty, if it may."""
    await bench.restart()
    for _ in range(passes):
        bench.clock.move(2)
        await bench.make_pass()


async def look_on(bench: Bench, seconds: int) -> None:
    """Have the process make passes for so long."""
    for _ in range(0, seconds, 2):
        bench.clock.move(2)
        await bench.make_pass()


def hold(bench: Bench) -> None:
    """Keep the pods, as a user does."""
    app = bench.server.get("streamapps", NAMESPACE, NAME)
    assert app is not None
    bench.server.put("streamapps", {**app, "metadata": {**app["metadata"], "annotations": {HOLD: "not today"}}})


def noted(bench: Bench) -> Json:
    """What the status says of the lower number."""
    found: Json = bench.status()["scaleDown"]["desired"]
    return found


def seconds_since(bench: Bench, date: datetime) -> float:
    return (bench.clock.now() - date).total_seconds()


def run(play: Callable[[Bench], Awaitable[None]]) -> None:
    """Play it on a settled application of four pods."""

    async def main() -> None:
        async with a_bench(4) as bench:
            await play(bench)

    asyncio.run(main())


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
