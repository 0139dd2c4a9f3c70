"""The score of estimates is that of days that did not teach it, and counts only holds whose end was seen."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from streamapp.analytics.insight.scores import EtaLook, looks, score

START = datetime(2026, 11, 1, 8, tzinfo=UTC)


def decision(seconds: float, verdict: str, eta: float | None = None, hold: str = "h1") -> dict[str, Any]:
    return {
        "t_start": START + timedelta(seconds=seconds),
        "verdict": verdict,
        "hold_id": hold,
        "eta_seconds": eta,
    }


def history(spread: float, days: int = 28, of_day: int = 10, drift: float = 0.0) -> list[EtaLook]:
    draws = np.random.default_rng(1)
    return [
        EtaLook(
            f"2026-11-{day + 1:02d}", f"{day}-{hold}", 100.0, 100.0 * float(np.exp(draws.normal(drift * day, spread)))
        )
        for day in range(days)
        for hold in range(of_day)
    ]


def test_the_truth_of_a_look_is_the_next_step_of_its_hold() -> None:
    rows = [
        decision(0, "Hold", 50.0),
        decision(30, "Hold"),
        decision(40, "Hold", 10.0),
        decision(60, "Step"),
        decision(61, "Hold", 5.0),
        decision(70, "Step", hold="h2"),
    ]
    assert looks(rows) == [EtaLook("2026-11-01", "h1", 50.0, 60.0), EtaLook("2026-11-01", "h1", 10.0, 20.0)]


def test_a_row_that_only_carries_on_over_midnight_is_no_look() -> None:
    assert looks([decision(16 * 3600, "Hold", 50.0), decision(16 * 3600 + 60, "Step")]) == []


def test_nine_of_ten_are_covered_where_errors_stay_what_they_were() -> None:
    found = score(history(spread=0.3))
    assert found is not None
    assert found.is_good
    assert found.cover == pytest.approx(0.9, abs=0.05)
    assert (found.low, found.high) == pytest.approx((np.exp(-1.645 * 0.3), np.exp(1.645 * 0.3)), rel=0.12)
    assert found.holds == 260
    assert found.days == 26


def test_estimates_that_get_worse_each_day_lose_their_cover() -> None:
    found = score(history(spread=0.05, drift=0.1))
    assert found is not None
    assert found.cover < 0.3
    assert not found.is_good


def test_few_holds_have_no_score() -> None:
    assert score([]) is None
    assert score(history(spread=0.3, days=2, of_day=19)) is None


def test_a_long_hold_weighs_as_much_as_a_short_one() -> None:
    usual = history(spread=0.3)
    odd = [EtaLook("2026-11-28", "odd", 100.0, 1e5)] * 5_000
    found = score([*usual, *odd])
    assert found is not None
    assert found.cover == pytest.approx(0.9, abs=0.05)
    assert found.high < 2
