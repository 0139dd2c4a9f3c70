"""The score of estimates is that of days that did not teach it, and counts only holds whose end was seen."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from streamapp.analytics.insight.scores import EtaLook, learned_eta, looks, score

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


def restored(day: int, rate: float, task: str = "0_1", grade: str = "A") -> dict[str, Any]:
    return {"dt": f"2026-11-{day:02d}", "task": task, "gross_rate": rate, "grade": grade}


def one_hold(nth: int, day: int, lag: int | None, took: float, task: str = "0_3") -> list[dict[str, Any]]:
    """A hold without an estimate that waits for one task, and its step."""
    begin = (datetime(2026, 11, day, 8, tzinfo=UTC) - START).total_seconds() + nth
    hold = {**decision(begin, "Hold", hold=f"{day}-{nth}"), "blocking": [{"task": task, "ordinal": 1, "lag": lag}]}
    return [hold, {**decision(begin + took, "Step", hold=f"{day}-{nth}"), "blocking": None}]


def holds(rate_of_day: Any, days: int = 10, of_day: int = 10) -> list[dict[str, Any]]:
    draws = np.random.default_rng(1)
    return [
        row
        for day in range(1, days + 1)
        for nth in range(of_day)
        for row in one_hold(nth, day, 50_000, 50_000 / rate_of_day(day) * float(np.exp(draws.normal(0, 0.2))))
    ]


def test_learned_rates_are_scored_by_the_rates_of_the_days_before() -> None:
    rows = holds(lambda _: 1000.0)
    found = learned_eta(rows, rows, [restored(day, 1000.0) for day in range(1, 11)])
    assert found is not None
    assert found.rates == {"0": 1000.0}
    assert found.score.cover == pytest.approx(0.9, abs=0.08)
    assert found.score.is_good
    # Rates are known from the second day on, and factors need 20 holds of days before.
    assert (found.score.holds, found.score.days) == (70, 7)


def test_rates_that_fall_by_half_each_day_have_no_good_score() -> None:
    rows = holds(lambda day: 1000.0 / 2**day)
    found = learned_eta(rows, rows, [restored(day, 1000.0 / 2**day) for day in range(1, 11)])
    assert found is not None
    assert not found.score.is_good


def test_looks_with_an_estimate_an_unknown_lag_or_an_unknown_rate_do_not_count() -> None:
    stints = [restored(day, 1000.0) for day in range(1, 11)]
    rows = holds(lambda _: 1000.0)
    estimated = [{**row, "eta_seconds": 50.0} for row in rows]
    unknown = [row for day in range(1, 11) for nth in range(10) for row in one_hold(nth, day, None, 50)]
    others = [row for day in range(1, 11) for nth in range(10) for row in one_hold(nth, day, 50_000, 50, "7_1")]
    for kept in (estimated, unknown, others):
        assert learned_eta(kept, kept, stints) is None
    assert learned_eta(rows, [], stints) is None
    poor = [{**one, "grade": "C"} for one in stints]
    assert learned_eta(rows, rows, poor) is None


def test_the_slowest_of_several_tasks_is_the_estimate() -> None:
    rows = holds(lambda _: 1000.0)
    slow = [{"task": "1_0", "ordinal": 0, "lag": 50_000}]
    both = [{**row, "blocking": [*row["blocking"], *slow]} if row["blocking"] else row for row in rows]
    stints = [restored(day, rate, task) for day in range(1, 11) for rate, task in ((1000.0, "0_1"), (100.0, "1_1"))]
    found = learned_eta(both, both, stints)
    assert found is not None
    assert found.score.high == pytest.approx(0.1, rel=0.6)
