"""The questions of `tests.benchmarks.engines` in the words of Polars."""

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

KEY = ["cluster", "namespace", "app", "uid"]
COPY = [*KEY, "task", "ordinal", "process_id"]
MICROS_AN_HOUR = 3_600_000_000


def questions(files: Mapping[str, list[str]]) -> dict[str, Callable[[], dict[str, Any]]]:
    """Each question, ready to be asked."""
    samples = pl.scan_parquet(files["b_sample"])
    limits = pl.scan_parquet(files["b_config"]).group_by(KEY).agg(a=pl.col("acceptable_recovery_lag").max())
    owed = (pl.col("end_offset") - pl.col("offset")).clip(lower_bound=0)
    runs = (pl.col("role") == "ACTIVE") & (pl.col("state") == "RUNNING").fill_null(value=False)
    lagged = samples.with_columns(t=pl.col("ts").dt.epoch("us"), runs=runs).with_columns(
        lag=pl.when("runs").then(0).otherwise(owed)
    )
    limited = lagged.join(limits, on=KEY)
    asked = {
        "lag by hour": _by_hour(lagged),
        "far behind": _far_behind(limited),
        "times behind": _times_behind(limited),
    }
    return {
        name: lambda frame=frame: frame.collect(engine="streaming").to_dicts()[0]  # type: ignore[misc]
        for name, frame in asked.items()
    }


def _by_hour(lagged: pl.LazyFrame) -> pl.LazyFrame:
    hours = (
        lagged.filter(pl.col("lag").is_not_null() & ~pl.col("runs"))
        .group_by([*KEY, "task", "role", (pl.col("t") // MICROS_AN_HOUR).alias("hour")])
        .agg(
            n=pl.len(),
            copies=pl.col("process_id").n_unique(),
            mean=pl.col("lag").mean(),
            most=pl.col("lag").max(),
        )
    )
    return hours.select(found=pl.len(), **{name: pl.col(name).sum() for name in ("n", "copies", "mean", "most")})


def _far_behind(limited: pl.LazyFrame) -> pl.LazyFrame:
    return limited.filter(pl.col("lag") > 0.1 * pl.col("a")).select(
        found=pl.len(), lag=pl.col("lag").sum(), copies=pl.col("process_id").n_unique()
    )


def _times_behind(limited: pl.LazyFrame) -> pl.LazyFrame:
    behind = (pl.col("lag") > pl.col("a")).alias("behind")
    usual = pl.max_horizontal(pl.lit(300.0), 5 * pl.col("interval_seconds").shift().over(COPY))
    broken = ((pl.col("t") - pl.col("t").shift().over(COPY)) > 1_000_000 * usual).fill_null(value=True)
    cut = (
        limited.filter(pl.col("lag").is_not_null())
        .sort([*COPY, "t", "seq"])
        .with_columns(behind)
        .with_columns(was=pl.col("behind").shift().over(COPY).fill_null(value=False), broken=broken)
    )
    starts = pl.col("behind") & (pl.col("broken") | ~pl.col("was"))
    kept = cut.with_columns(run=starts.cum_sum().over(COPY)).filter(
        pl.col("behind") | (pl.col("was") & ~pl.col("broken"))
    )
    times = kept.group_by([*COPY, "run"]).agg(
        n=pl.col("behind").sum(),
        restored=pl.col("offset").filter(pl.col("behind")).max() - pl.col("offset").min(),
    )
    return times.select(found=pl.len(), n=pl.col("n").sum(), restored=pl.col("restored").sum())
