"""Gold finds what the made-up record has planted, and an ingest refuses what a broken recorder writes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamapp.analytics.bronze.ingest import Ingest, bronze
from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.progress import Stages
from streamapp.analytics.synthetic.fleet import SICK_SHARE
from streamapp.analytics.synthetic.generate import planted, write_record
from tests.analytics.conftest import FLEET, NOW, Whole
from tests.analytics.support.disorder import NAMESPACE
from tests.analytics.support.reading import records

pytestmark = [pytest.mark.analytics, pytest.mark.timeout(900)]


def planted_in(whole: Whole, table: str) -> list[dict[str, Any]]:
    """The rows of the fleet; of the others nothing is planted."""
    return [row for row in records(whole.root, table) if row["namespace"] != NAMESPACE]


def test_rates_of_restoring_are_found_within_five_per_cent(whole: Whole) -> None:
    truth = planted(whole.record)
    rows = [row for row in planted_in(whole, "g_restore_profile") if row["scope"] == "subtopology"]
    found = {(row["app"], row["subtopology"]): row["rate_p50"] for row in rows if row["app"] != truth.sick_volume[0]}
    wanted = {
        (app, sub): rate
        for app, rates in truth.rates.items()
        for sub, rate in rates.items()
        if app != truth.sick_volume[0]
    }
    assert found == pytest.approx(wanted, rel=0.05)


def test_the_sick_volume_stands_out_from_all_others(whole: Whole) -> None:
    truth = planted(whole.record)
    ratios = {
        (row["app"], row["volume"]): row["rate_p50"] / truth.rates[row["app"]][row["subtopology"]]
        for row in planted_in(whole, "g_restore_profile")
        if row["scope"] == "volume" and row["n_stints"] >= 5
    }
    sick = {which for which, ratio in ratios.items() if ratio < 0.5}
    assert sick == {truth.sick_volume}
    assert ratios[truth.sick_volume] == pytest.approx(SICK_SHARE, rel=0.1)


def test_the_flapping_autoscaler_is_found_to_the_pair(whole: Whole) -> None:
    truth = planted(whole.record)
    rows = planted_in(whole, "g_autoscaler_daily")
    assert {(row["app"], row["flap_pairs"], row["wasted_events"]) for row in rows if row["flap_pairs"]} == {
        (truth.flapping, truth.flap_pairs_a_day, truth.wasted_a_day)
    }
    assert sum(row["reversals"] for row in rows if row["app"] != truth.flapping) == 0


def test_the_skewed_application_is_found(whole: Whole) -> None:
    truth = planted(whole.record)
    rows = planted_in(whole, "g_skew_daily")
    skewed = [row for row in rows if row["bad_s"] > 0.5 * row["seen_s"]]
    assert {row["app"] for row in skewed} == {truth.skewed}
    assert [row["max_share"] for row in skewed] == pytest.approx([truth.max_share] * FLEET.days, rel=0.01)


def test_raises_bring_throughput_but_where_the_busiest_pod_is_the_limit(whole: Whole) -> None:
    truth = planted(whole.record)
    gains: dict[str, list[float]] = {}
    for row in planted_in(whole, "g_raise"):
        if row["rate_before"] and row["rate_after"] is not None:
            gains.setdefault(row["app"], []).append(row["rate_after"] / row["rate_before"])
    assert gains.keys() == {"app-001", truth.skewed, truth.wants_fewer}, "a raise that flaps has no time of its own"
    assert all(len(of_app) >= 5 for of_app in gains.values())
    assert gains.pop(truth.skewed) == pytest.approx([1.0] * 8, abs=0.01)
    # Five pods in place of four, less the time of the steps themselves.
    assert all(1.15 < gain < 1.26 for of_app in gains.values() for gain in of_app)


def test_the_full_volume_and_the_minimum_that_is_too_high_are_found(whole: Whole) -> None:
    truth = planted(whole.record)
    rows = planted_in(whole, "g_volume_daily")
    assert {row["volume"] for row in rows if row["state_bytes"] > 0.8 * row["requested_bytes"]} == {truth.full_volume}
    below = {row["app"] for row in planted_in(whole, "g_autoscaler_daily") if row["below_min_s"]}
    assert below == {truth.wants_fewer}


def test_an_ingest_refuses_the_record_of_a_broken_recorder_and_says_why(spark: SparkSession, tmp_path: Path) -> None:
    broken = replace(FLEET, apps=3, days=1, tasks=4, file_seconds=43_200, bug=True)
    files = [path for path, _ in write_record(broken, tmp_path / "record")]
    root = tmp_path / "tables"
    with pytest.raises(AnalyticsError, match="negativeNumber") as told:
        Ingest(spark, bronze(root), Stages(), NOW).run([tmp_path / "record"])
    assert told.value.what in {str(path) for path in files}
    assert "first in line" in told.value.why
    assert bronze(root).current().number == 0
    assert not list((root / "bronze").rglob("*.parquet"))
