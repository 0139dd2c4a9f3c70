"""The Secret with the Kafka client settings: only an answer changes what is known, never a read that failed."""

import asyncio
import base64
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aiohttp import web

from streamapp.core.facts.tasks import TaskSet
from tests.controller.doubles.bench import KEY, Bench, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE

KAFKA = {"bootstrapServers": "kafka:9092", "configSecretRefs": [{"name": "props"}]}


def put_secret(bench: Bench, password: str, name: str = "props") -> None:
    """Write the Secret as its owner does."""
    data = {"sasl.jaas.config": base64.b64encode(password.encode()).decode()}
    bench.server.put("secrets", {"metadata": {"namespace": NAMESPACE, "name": name}, "data": data})


def on_a_bench(play: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    """Play something on a bench whose application has its client settings from a Secret, and is converged."""

    async def run() -> None:
        async with a_bench(4) as bench:
            put_secret(bench, "first")
            bench.desired(4, kafka=KAFKA)
            await bench.make_pass()
            await bench.run(lambda: bench.is_settled(4))
            bench.wirings.clear()
            await play(bench)
            assert bench.wrongs == []

    asyncio.run(run())


def refuse_secrets(bench: Bench, status: int) -> None:
    """Have the API server answer so to each read of a Secret."""

    def answer(request: web.Request) -> tuple[int, str] | None:
        return (status, "injected") if "/secrets/" in request.path else None

    bench.server.refuse = answer


@pytest.mark.parametrize("status", [429, 500, 503, 504, 401])
def test_a_read_that_failed_keeps_connection_readings_and_tasks(status: int) -> None:
    async def play(bench: Bench) -> None:
        application = bench.applications.find(KEY)
        assert application is not None
        watch, readings = application.watch, len(application.memory.readings)
        refuse_secrets(bench, status)
        assert await bench.make_pass()
        assert (bench.wirings, application.watch) == ([], watch)
        assert len(application.memory.readings) >= readings > 0
        assert isinstance(application.memory.task_set, TaskSet)

    on_a_bench(play)


def test_a_scale_down_ends_although_every_other_read_of_the_secret_fails() -> None:
    async def play(bench: Bench) -> None:
        reads = 0

        def answer(request: web.Request) -> tuple[int, str] | None:
            nonlocal reads
            reads += "/secrets/" in request.path
            return (429, "injected") if "/secrets/" in request.path and reads % 2 else None

        bench.server.refuse = answer
        bench.desired(3)
        await bench.run(lambda: bench.is_settled(3))
        assert bench.wirings == []

    on_a_bench(play)


@pytest.mark.parametrize("status", [404, 403])
def test_a_secret_that_is_gone_or_forbidden_ends_the_connection_once(status: int) -> None:
    async def play(bench: Bench) -> None:
        refuse_secrets(bench, status)
        for _ in range(3):
            await bench.make_pass()
        (access,) = bench.wirings
        assert access.properties == ()
        assert (access.fault or "").startswith("secret props: GET ")
        refuse_secrets(bench, 429)
        await bench.make_pass()
        assert bench.wirings == [access]

    on_a_bench(play)


def test_other_content_of_the_secret_is_a_new_connection() -> None:
    async def play(bench: Bench) -> None:
        put_secret(bench, "second")
        await bench.make_pass()
        assert [access.properties for access in bench.wirings] == [(("sasl.jaas.config", "second"),)]

    on_a_bench(play)


def test_what_is_known_of_one_secret_is_not_used_for_another() -> None:
    async def play(bench: Bench) -> None:
        put_secret(bench, "other", "others")
        refuse_secrets(bench, 429)
        bench.desired(4, kafka={**KAFKA, "configSecretRefs": [{"name": "others"}]})
        await bench.make_pass()
        (access,) = bench.wirings
        assert (access.properties, (access.fault or "").startswith("secret others: ")) == ((), True)
        bench.server.refuse = lambda _: None
        await bench.make_pass()
        assert bench.wirings[1].properties == (("sasl.jaas.config", "other"),)

    on_a_bench(play)


def test_new_brokers_are_reached_with_the_settings_that_are_known() -> None:
    async def play(bench: Bench) -> None:
        refuse_secrets(bench, 429)
        bench.desired(4, kafka={**KAFKA, "bootstrapServers": "others:9092"})
        await bench.make_pass()
        (access,) = bench.wirings
        assert (access.bootstrap, access.properties) == ("others:9092", (("sasl.jaas.config", "first"),))

    on_a_bench(play)
