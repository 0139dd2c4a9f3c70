"""What the metrics say while something is wrong: an alert rests on each of these."""

import asyncio

from prometheus_client.parser import text_string_to_metric_families

from tests.controller.doubles.bench import Bench, a_bench


def value(bench: Bench, name: str, **labels: str) -> float | None:
    """A sample as Prometheus scrapes it."""
    samples = [
        sample.value
        for family in text_string_to_metric_families(bench.metrics.text().decode())
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return samples[0] if samples else None


def test_the_age_of_the_group_grows_while_brokers_are_away_though_they_are_asked_all_the_time() -> None:
    async def main() -> None:
        async with a_bench() as bench:
            assert (value(bench, "streamapp_group_read_age_seconds") or 0) < 5
            bench.group.is_reachable = False
            for _ in range(60):
                bench.clock.move(2)
                await bench.make_pass()
            age = value(bench, "streamapp_group_read_age_seconds")
            assert age is not None
            assert 118 < age < 126
            bench.clock.move(100)  # no pass is needed for it
            assert (value(bench, "streamapp_group_read_age_seconds") or 0) > age + 99
            bench.group.is_reachable = True
            await bench.make_pass()
            assert (value(bench, "streamapp_group_read_age_seconds") or 0) < 5

    asyncio.run(main())


def test_the_time_of_the_last_success_stands_still_while_reconciles_fail() -> None:
    async def main() -> None:
        async with a_bench() as bench:
            await bench.make_pass()
            before = value(bench, "streamapp_last_success_timestamp_seconds")
            assert before is not None
            assert abs(before - bench.clock.now().timestamp()) < 5
            bench.server.refuse = lambda request: (500, "away") if "pods" in request.path else None
            for _ in range(5):
                bench.clock.move(60)
                assert not await bench.make_pass()
            assert value(bench, "streamapp_last_success_timestamp_seconds") == before

    asyncio.run(main())


def test_holds_and_downtimes_are_counted_when_they_end() -> None:
    async def main() -> None:
        async with a_bench(4) as bench:
            bench.desired(3)
            await bench.run(lambda: bench.is_settled(3))
            held = value(bench, "streamapp_hold_duration_seconds_count", outcome="removed")
            assert held == 1
            assert value(bench, "streamapp_step_downtime_seconds_count") == 1

    asyncio.run(main())
