"""The file of insight is anybody's: what is read of it is fresh and whole, or nothing."""

import asyncio
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from streamapp.api.insight import AppInsight, EtaScore, Insight, to_json
from streamapp.controller.insight_file import InsightFile
from streamapp.kube.client.kinds import Key

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ORDERS = Key("shop", "orders")
SCORE = EtaScore(cover=0.9, median_error_seconds=0.0, low=0.5, high=2.0, holds=40, days=20)
APP = AppInsight(namespace="shop", app="orders", uid="u1", eta=SCORE)
GOOD = to_json(Insight(cluster="", made_at=NOW, valid_until=NOW + timedelta(hours=1), apps=(APP,)))


class Watch:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> datetime:
        return self.time


def test_a_good_file_is_read_and_is_no_longer_used_once_it_is_too_old(tmp_path: Path) -> None:
    path, watch = tmp_path / "insight.json", Watch()
    path.write_bytes(GOOD)
    insight = InsightFile(str(path), "", watch.now)
    assert insight.of(ORDERS, "u1") is None
    asyncio.run(insight.read(path))
    assert insight.of(ORDERS, "u1") == APP
    assert insight.of(ORDERS, "another") is None
    assert insight.of(Key("bank", "orders"), "u1") is None
    watch.time += timedelta(hours=1)
    assert insight.of(ORDERS, "u1") is None


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000, b" " * 10_000_000, GOOD.replace(b"0.9", b"NaN")], ids=len)
def test_rubbish_replaces_what_was_good_by_nothing_and_raises_nothing(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "insight.json"
    path.write_bytes(GOOD)
    insight = InsightFile(str(path), "", Watch().now)
    asyncio.run(insight.read(path))
    path.write_bytes(text)
    asyncio.run(insight.read(path))
    assert insight.of(ORDERS, "u1") is None


def test_what_is_no_file_does_not_hang(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, tmp_path / "missing", Path("/dev/zero")):
        insight = InsightFile(str(path), "", Watch().now)
        asyncio.run(asyncio.wait_for(insight.read(path), 5))
        assert insight.of(ORDERS, "u1") is None


def test_a_file_that_is_put_there_later_is_found(tmp_path: Path) -> None:
    path = tmp_path / "insight.json"

    async def started() -> AppInsight | None:
        insight = InsightFile(str(path), "", Watch().now)
        path.write_bytes(GOOD)
        insight.start()
        for _ in range(1000):
            if insight.of(ORDERS, "u1"):
                break
            await asyncio.to_thread(lambda: None)
        found = insight.of(ORDERS, "u1")
        await insight.close()
        return found

    assert asyncio.run(started()) == APP
