"""Quotas are asked for while a pod is missing, seldom, and in nobody's way."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from streamapp.controller.reconcile.quotas import REFRESH_SECONDS, RETRY_SECONDS, QuotaLister
from streamapp.core.facts.workload import Workload
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import RefusedError
from streamapp.kube.client.kinds import QUOTAS, Kind
from tests.builders import pods
from tests.support import example

Json = dict[str, Any]
FULL = {"metadata": {"name": "compute"}, "spec": {}, "status": {"hard": {"pods": "2"}, "used": {"pods": "2"}}}
STATEFULSET = {"spec": {"template": {"spec": {"containers": [{"name": "app"}]}}}}
SHORT = replace(example.workload(), pods=pods(2))
NAMED = ["quota compute: 2 of 2 pods are used"]


class Listing(KubeClient):
    """Stands in for the API server: answers with quotas, or with an error, and counts."""

    def __init__(self, answer: list[Json] | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[Kind, str | None]] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def list(self, kind: Kind, namespace: str | None, *_: Any, **__: Any) -> list[Json]:
        self.asked.append((kind, namespace))
        await self.may_answer.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Clock:
    """Seconds that a test sets."""

    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


Play = Callable[[QuotaLister, Listing, Clock], Coroutine[Any, Any, None]]


def played(answer: list[Json] | Exception, play: Play) -> None:
    client, clock = Listing(answer), Clock()
    asyncio.run(play(QuotaLister(client, clock), client, clock))


async def told(lister: QuotaLister, workload: Workload = SHORT, statefulset: Json | None = STATEFULSET) -> list[str]:
    return [str(one) for one in await lister.limits("demo", workload, statefulset)]


def test_a_full_quota_is_named_while_a_pod_is_missing() -> None:
    async def play(lister: QuotaLister, client: Listing, _: Clock) -> None:
        assert await told(lister) == NAMED
        assert client.asked == [(QUOTAS, "demo")]

    played([FULL], play)


def test_nobody_is_asked_while_all_pods_are_there() -> None:
    async def play(lister: QuotaLister, client: Listing, _: Clock) -> None:
        assert await told(lister, example.workload()) == []
        assert await told(lister, replace(SHORT, statefulset=None), None) == []
        assert client.asked == []

    played([FULL], play)


def test_one_list_serves_several_passes() -> None:
    async def play(lister: QuotaLister, client: Listing, clock: Clock) -> None:
        assert [await told(lister) for _ in range(3)] == [NAMED] * 3
        assert len(client.asked) == 1
        clock.seconds += REFRESH_SECONDS
        assert await told(lister) == NAMED
        assert len(client.asked) == 2

    played([FULL], play)


def test_without_the_right_nothing_is_said_and_it_is_seldom_tried() -> None:
    async def play(lister: QuotaLister, client: Listing, clock: Clock) -> None:
        assert await told(lister) == []
        clock.seconds += RETRY_SECONDS - 1
        assert await told(lister) == []
        assert len(client.asked) == 1
        clock.seconds += 1
        client.answer = [FULL]
        assert await told(lister) == NAMED

    played(RefusedError("list resourcequotas", "forbidden", "grant it"), play)


@pytest.mark.parametrize("hard", ["many", ""])
def test_a_figure_that_cannot_be_read_says_nothing(hard: str) -> None:
    async def play(lister: QuotaLister, _: Listing, __: Clock) -> None:
        assert await told(lister) == []

    played([{**FULL, "status": {"hard": {"pods": hard}, "used": {"pods": "2"}}}], play)


def test_while_one_application_asks_the_others_of_its_namespace_keep_the_last_answer() -> None:
    async def play(lister: QuotaLister, client: Listing, clock: Clock) -> None:
        assert await told(lister) == NAMED
        clock.seconds += REFRESH_SECONDS
        client.may_answer.clear()
        asking = asyncio.create_task(told(lister))
        await asyncio.sleep(0)
        assert await told(lister) == NAMED
        client.may_answer.set()
        assert await asking == NAMED

    played([FULL], play)


def test_an_answer_that_does_not_come_takes_the_last_one_away() -> None:
    async def play(lister: QuotaLister, client: Listing, clock: Clock) -> None:
        assert await told(lister) == NAMED
        clock.seconds += REFRESH_SECONDS
        client.answer = RefusedError("list resourcequotas", "forbidden", "grant it")
        assert await told(lister) == []

    played([FULL], play)
