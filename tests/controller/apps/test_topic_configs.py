"""Settings of topics in the whole shell: when they are read, what is told of them, and that nothing waits for them."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from streamapp.core.facts.topic_configs import ConfigUnread, TopicConfig
from streamapp.core.reasons import Reason
from tests.controller.doubles.bench import Bench, a_bench, a_stream_app
from tests.support.example import task_set


def on_a_bench(play: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    """Play something on a bench whose application has four pods and is converged."""

    async def run() -> None:
        async with a_bench(4) as bench:
            await play(bench)

    asyncio.run(run())


SHORT = TopicConfig(frozenset({"compact"}), None, timedelta(hours=1))
UNREAD = ConfigUnread("grant DESCRIBE_CONFIGS on topic wordcount-counts-changelog")


def warnings(bench: Bench) -> list[str]:
    """The notes of all Events of type Warning, in their order."""
    events = [each.body for (plural, _, _), each in bench.server.objects.items() if plural == "events"]
    return [event["note"] for event in events if event["type"] == "Warning"]


def test_state_that_may_lie_unused_for_too_long_is_told_once_and_until_it_is_mended() -> None:
    async def play(bench: Bench) -> None:
        bench.group.config = SHORT
        await bench.restart()
        for _ in range(300):
            bench.clock.move(5)
            await bench.make_pass()
        assert bench.condition("ProcessIdentityStable") == ("True", "MaxIdleTimeTooLong")
        (note,) = warnings(bench)
        (topic,) = task_set().topics
        assert f"topic {topic}: delete.retention.ms is 3600000 (1:00:00), `state.maxIdleTime` is 20:00:00." in note
        assert note.endswith(Reason.MaxIdleTimeTooLong.next_step)
        bench.desired(4, state={**a_stream_app()["spec"]["state"], "maxIdleTime": "30m"})
        await bench.run(lambda: bench.condition("ProcessIdentityStable") == ("True", "IdentityHolds"))

    on_a_bench(play)


def test_a_state_that_is_told_to_be_kept_too_long_keeps_no_pod() -> None:
    async def play(bench: Bench) -> None:
        bench.group.config = SHORT
        await bench.restart()
        bench.desired(3)
        await bench.run(lambda: bench.is_settled(3), 600)
        bench.desired(5)
        await bench.make_pass()
        assert bench.granted() == 5
        assert bench.condition("ProcessIdentityStable") == ("True", "MaxIdleTimeTooLong")

    on_a_bench(play)


def test_settings_of_topics_are_read_once_an_hour_however_often_members_join() -> None:
    async def play(bench: Bench) -> None:
        asked = bench.group.configs_asked
        assert asked == [task_set().topics]
        bench.desired(3)
        await bench.run(lambda: bench.is_settled(3), 600)
        assert (len(asked), bench.group.rebalances > 1) == (1, True)
        bench.clock.move(3600)
        for _ in range(3):
            bench.clock.move(30)
            await bench.make_pass()
        assert len(asked) == 2

    on_a_bench(play)


def test_settings_that_may_not_be_read_are_asked_for_again_in_ten_minutes_and_break_nothing() -> None:
    async def play(bench: Bench) -> None:
        bench.group.config = UNREAD
        await bench.restart()
        bench.desired(3)
        await bench.run(lambda: bench.is_settled(3), 540)
        assert len(bench.group.configs_asked) == 2
        assert bench.condition("ProcessIdentityStable") == ("True", "IdentityHolds")
        (message,) = (
            each["message"] for each in bench.status()["conditions"] if each["type"] == "ProcessIdentityStable"
        )
        assert UNREAD.why in message
        bench.group.config = SHORT
        bench.clock.move(600)
        await bench.run(lambda: bench.condition("ProcessIdentityStable") == ("True", "MaxIdleTimeTooLong"), 20)
        assert len(bench.group.configs_asked) == 3

    on_a_bench(play)


def test_nobody_asks_for_settings_of_topics_where_no_state_is_kept() -> None:
    async def play(bench: Bench) -> None:
        before = len(bench.group.configs_asked)
        app = a_stream_app()
        del app["spec"]["state"]
        bench.server.put("streamapps", {**app, "spec": {**app["spec"], "replicas": 4}})
        await bench.make_pass()
        bench.clock.move(7200)
        for _ in range(3):
            bench.clock.move(5)
            await bench.make_pass()
        assert len(bench.group.configs_asked) == before

    on_a_bench(play)
