"""What the metrics say while something is wrong: an alert rests on each of these."""

import asyncio

from prometheus_client.parser import text_string_to_metric_families

from streamapp.controller.reconcile.report import REMOVAL_REASONS
from tests.controller.doubles.bench import KEY, NAME, Bench, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE


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


def test_a_condition_has_one_answer_and_it_is_the_one_of_the_last_pass() -> None:
    def answers(bench: Bench) -> dict[str, float | None]:
        known = ("True", "False", "Unknown")
        return {one: value(bench, "streamapp_condition", type="KafkaReachable", status=one) for one in known}

    async def main() -> None:
        async with a_bench() as bench:
            found = []
            for is_reachable in (True, False, False, True):
                bench.group.is_reachable = is_reachable
                bench.clock.move(30)
                await bench.make_pass()
                found.append(answers(bench))
            sound, away = {"True": 1, "False": 0, "Unknown": 0}, {"True": 0, "False": 1, "Unknown": 0}
            assert found == [sound, away, away, sound]
            bench.reconciler._reporter.forget(KEY)
            assert set(answers(bench).values()) == {None}
            await bench.make_pass()
            assert answers(bench) == sound

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


def test_a_streamapp_that_another_installation_left_has_an_age_of_success() -> None:
    async def main() -> None:
        async with a_bench() as bench:
            bench.reconciler._left_to[KEY] = "another"
            bench.metrics.forget(KEY.namespace, KEY.name)
            bench.reconciler._reporter.forget(KEY)
            await bench.make_pass()
            bench.clock.move(5_000)
            assert (value(bench, "streamapp_last_success_age_seconds") or 0) > 4_990

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


def test_the_age_of_the_last_success_grows_also_where_no_reconcile_ever_succeeded() -> None:
    async def main() -> None:
        async with a_bench() as bench:
            bench.server.refuse = lambda request: (500, "away") if "pods" in request.path else None
            await bench.restart()
            assert value(bench, "streamapp_last_success_age_seconds") is None
            assert not await bench.make_pass()
            bench.clock.move(1800)
            assert not await bench.make_pass()
            assert value(bench, "streamapp_last_success_timestamp_seconds") is None
            assert (value(bench, "streamapp_last_success_age_seconds") or 0) >= 1800
            bench.server.refuse = lambda _: None
            assert await bench.make_pass()
            assert (value(bench, "streamapp_last_success_age_seconds") or 0) < 5

    asyncio.run(main())


def test_an_application_that_is_gone_has_no_age_of_its_last_success() -> None:
    async def main() -> None:
        async with a_bench() as bench:
            await bench.make_pass()
            assert value(bench, "streamapp_last_success_age_seconds") is not None
            bench.server.remove("streamapps", KEY.namespace, KEY.name)
            await bench.make_pass()
            assert value(bench, "streamapp_last_success_age_seconds") is None

    asyncio.run(main())


def test_a_hold_whose_record_cannot_be_read_has_a_duration() -> None:
    async def main() -> None:
        async with a_bench(4) as bench:
            bench.desired(3)
            bench.group.lag = 900_000
            await bench.run(lambda: bench.record() is not None)
            statefulset = bench.statefulset()
            statefulset["metadata"]["annotations"]["streamapp.dev/hold-record"] = "no record"
            bench.server.put("statefulsets", statefulset)
            await bench.restart()
            await bench.run(lambda: bench.condition("ScaleDownHeld") == ("True", "HoldRecordUnreadable"))
            for _ in range(10):
                bench.clock.move(10)
                await bench.make_pass()
            assert (value(bench, "streamapp_hold_seconds") or 0) >= 100
            bench.desired(5)
            await bench.run(lambda: bench.condition("ScaleDownHeld")[0] == "False")
            assert value(bench, "streamapp_hold_seconds") == 0

    asyncio.run(main())


def test_a_hold_of_a_user_has_no_duration_that_could_alarm() -> None:
    async def main() -> None:
        async with a_bench(4) as bench:
            bench.group.lag = 50_000
            bench.desired(3)
            await bench.run(lambda: (value(bench, "streamapp_hold_seconds") or 0) > 0)
            app = bench.server.get("streamapps", NAMESPACE, NAME)
            assert app is not None
            metadata = {**app["metadata"], "annotations": {"streamapp.dev/hold": "audit"}}
            bench.server.put("streamapps", {**app, "metadata": metadata})
            await bench.run(lambda: bench.condition("ScaleDownHeld")[1] == "HeldByUser")
            assert value(bench, "streamapp_hold_seconds") == 0

    asyncio.run(main())


def test_a_hold_that_a_raise_ends_is_cancelled_also_where_nothing_else_can_be_read() -> None:
    async def main() -> None:
        async with a_bench(4) as bench:
            bench.group.lag = 900_000
            bench.desired(3)
            await bench.run(lambda: (value(bench, "streamapp_hold_seconds") or 0) > 0)
            bench.server.refuse = lambda request: (500, "away") if "pods" in request.path else None
            bench.desired(5)
            assert not await bench.make_pass()
            assert bench.granted() == 5
            bench.server.refuse = lambda _: None
            bench.group.lag = 0
            await bench.run(lambda: bench.is_settled(5))
            ended = {one: value(bench, HOLD_ENDS, outcome=one) for one in ("cancelled", "removed")}
            assert ended == {"cancelled": 1, "removed": 0}

    asyncio.run(main())


def test_what_is_counted_begins_with_nothing_so_that_the_first_event_is_a_rise() -> None:
    async def main() -> None:
        async with a_bench(4) as bench:
            await bench.make_pass()
            assert value(bench, "streamapp_replicas_removed_total", reason="Covered") == 0
            assert value(bench, HOLD_ENDS, outcome="removed") == 0
            bench.desired(3)
            await bench.run(lambda: bench.is_settled(3))
            reasons = {reason.name for reason in REMOVAL_REASONS}
            removed = {one: value(bench, "streamapp_replicas_removed_total", reason=one) for one in reasons}
            assert removed == {one: float(one == "Covered") for one in reasons}
            assert value(bench, "streamapp_plan_steps_total", step="GrantReplicas", result="error") == 0

    asyncio.run(main())


HOLD_ENDS = "streamapp_hold_duration_seconds_count"
