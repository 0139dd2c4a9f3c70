"""Makes insight of the tables: of each application the rates, the score, the budget and the first pieces of advice.

Called by the command line after a build. Reads Parquet files by Arrow; no Spark runs.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from streamapp.analytics.build import silver
from streamapp.analytics.insight.scores import learned_eta, looks, score
from streamapp.analytics.report.advice.model import Advice as Found
from streamapp.analytics.report.ledger import months
from streamapp.analytics.report.page import all_advice
from streamapp.analytics.report.rows import AppRows, ByApp, Key, Row, by_app
from streamapp.analytics.report.tables import Tables, read_tables
from streamapp.analytics.tables.derived_schemas import KEY
from streamapp.api.insight import (
    FILE,
    LONGEST_LINE,
    MOST_ADVICE,
    MOST_APPS,
    MOST_BYTES,
    MOST_RATES,
    MOST_VETOES,
    Advice,
    AppInsight,
    Budget,
    Effect,
    Insight,
    Patch,
    RestoreRate,
    to_json,
)

DAYS: Final = 28
_OF_LOOKS: Final = {*KEY, "t_start", "verdict", "hold_id", "eta_seconds", "blocking"}
VALID: Final = timedelta(days=3)
"""A nightly run can fail twice."""
WrittenInsight = Mapping[Path, Insight]
"""By the file that it is in; one for each cluster."""
_FEWEST_ADVICE: Final = 2
"""Pieces that an application keeps where all pieces have no room."""


def write_insight(root: Path, now: datetime) -> WrittenInsight:
    """Write `insight.json` into the folder of the tables; of several clusters, one folder for each.

    Raises:
        AnalyticsError: there are no tables, or they follow other definitions.
    """
    tables = read_tables(root, DAYS)
    found = insights(tables, held_looks(root, tables.days), now)
    places = [root / FILE] if len(found) == 1 else [_place(root, insight.cluster) for insight in found]
    for place, insight in zip(places, found, strict=True):
        _put(place, to_json(insight))
    return dict(zip(places, found, strict=True))


def _place(root: Path, cluster: str) -> Path:
    """The name of a cluster stands in the record, so anything can be in it."""
    return root / "insight" / quote(cluster, safe="") / FILE if cluster.strip(".") else root / "insight" / FILE


def held_looks(root: Path, days: Sequence[str]) -> ByApp:
    """The rows of `s_decision_interval` that hold pods without an estimate, with the tasks that are waited for.

    The tasks are the widest column of silver, so a day at a time is read, and little of it kept.
    """
    store = silver(root)
    version, table = store.current(), "s_decision_interval"
    others = set(store.schemas[table].names) - _OF_LOOKS
    kept = []
    for day in days:
        of_day = {table: {day: version.tables.get(table, {}).get(day, ())}}
        rows = store.arrow(replace(version, tables=of_day), table, but=others)
        kept.append(
            rows.filter(pc.and_(pc.equal(rows["verdict"].cast(pa.string()), "Hold"), rows["eta_seconds"].is_null()))
        )
    return by_app(pa.concat_tables(kept, promote_options="default") if kept else pa.table({name: [] for name in KEY}))


def insights(tables: Tables, held: ByApp, now: datetime) -> list[Insight]:
    """What these tables teach, for each cluster; `held` is that of `held_looks`."""
    advice = all_advice(tables)
    by_cluster: dict[str, list[Key]] = {}
    for key in tables.rows["s_seen"].spans:
        by_cluster.setdefault(key[0], []).append(key)
    return [
        _fitting(cluster, [_learned(key, tables.of(key), held, advice) for key in sorted(keys)], now)
        for cluster, keys in sorted(by_cluster.items())
    ]


def _fitting(cluster: str, apps: Sequence[AppInsight], now: datetime) -> Insight:
    """As many applications as have room; rates of volumes make room first, then the later pieces of advice."""
    chosen = list(apps[:MOST_APPS])
    for shortened in (_whole, _without_volumes, _with_first_advice):
        chosen = [shortened(one) for one in chosen]
        insight = _insight(cluster, chosen, len(apps) - len(chosen), now)
        if len(to_json(insight)) <= MOST_BYTES:
            return insight
    while len(to_json(insight)) > MOST_BYTES:
        chosen = chosen[: len(chosen) * 9 // 10]
        insight = _insight(cluster, chosen, len(apps) - len(chosen), now)
    return insight


def _insight(cluster: str, apps: Sequence[AppInsight], left_out: int, now: datetime) -> Insight:
    return Insight(cluster=cluster, made_at=now, valid_until=now + VALID, left_out=left_out, apps=tuple(apps))


def _whole(app: AppInsight) -> AppInsight:
    return app


def _with_first_advice(app: AppInsight) -> AppInsight:
    return app.model_copy(update={"advice": app.advice[:_FEWEST_ADVICE]})


def _without_volumes(app: AppInsight) -> AppInsight:
    return app.model_copy(update={"restore_rates": tuple(rate for rate in app.restore_rates if not rate.volume)})


def _learned(key: Key, rows: AppRows, held: ByApp, advice: dict[str, list[Found]]) -> AppInsight:
    pieces, decisions = advice[f"{key[1]}/{key[2]}"], rows["s_decision_interval"]
    return AppInsight(
        namespace=key[1],
        app=key[2],
        uid=key[3],
        restore_rates=tuple(_rates(rows))[:MOST_RATES],
        eta=score(looks(decisions)),
        learned_eta=learned_eta(decisions, held.of(key).to_pylist(), rows["s_learner_stint"]),
        budget=_budget(rows["g_downtime_daily"]),
        days=max((one.days for one in pieces), default=0),
        advice=tuple(_advice(one) for one in pieces if not one.is_empty)[:MOST_ADVICE],
    )


def _rates(rows: AppRows) -> Iterator[RestoreRate]:
    """Subtopologies first, then their volumes."""
    found = [row for row in rows["g_restore_profile"] if row["scope"] in {"subtopology", "volume"}]
    days = _days(rows["s_learner_stint"])
    for row in sorted(found, key=lambda row: (row["scope"], row["subtopology"], row["volume"] or "")):
        yield RestoreRate(
            subtopology=row["subtopology"],
            volume=row["volume"] or "",
            p10=row["rate_p10"],
            p50=row["rate_p50"],
            p90=row["rate_p90"],
            n=row["n_stints"],
            days=days,
        )


def _days(stints: Sequence[Row]) -> int:
    days = sorted({date.fromisoformat(str(row["dt"])) for row in stints})
    return (days[-1] - days[0]).days + 1 if days else 0


def _budget(rows: Sequence[Row]) -> Budget | None:
    found = months(rows)
    if not found:
        return None
    newest = found[-1]
    return Budget(month=newest.month, lost_seconds=newest.downtime.at_most_s, budget_seconds=newest.budget_s)


def _advice(found: Found) -> Advice:
    effect = found.effect
    return Advice(
        knob=_line(found.knob),
        current=_line(found.current),
        proposed=_line(found.proposed),
        evidence=_line(found.evidence),
        days=found.days,
        n=found.n,
        effect=None
        if effect is None
        else Effect(low=effect.low, mid=effect.mid, high=effect.high, unit=_line(effect.unit)),
        vetoes=tuple(map(_line, found.vetoes))[:MOST_VETOES],
        patch=_patch(found),
    )


def _patch(found: Found) -> Patch | None:
    """The patch, with the name of its object where that is one that Kubernetes takes."""
    if not found.patch:
        return None
    text = json.dumps(found.patch)
    for name in (found.name, ""):
        with suppress(ValueError):
            return Patch.model_validate({"kind": found.object, "name": name, "patch": text})
    return None


def _line(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)[:LONGEST_LINE]


def _put(path: Path, text: bytes) -> None:
    """As a whole: a reader sees the former file or this one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_bytes(text)
    draft.replace(path)
