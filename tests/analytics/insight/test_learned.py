"""Insight of tables: whole, within its bounds, good for the operator; and tables stand without it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streamapp.analytics import cli
from streamapp.analytics.bronze.ingest import bronze
from streamapp.analytics.build import gold, silver
from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.insight.destination import Destination
from streamapp.analytics.insight.learned import _advice, _fitting, held_looks, write_insight
from streamapp.analytics.report.advice.model import Advice as Found
from streamapp.analytics.report.advice.model import Effect
from streamapp.analytics.tables.bronze_schemas import QUARANTINE
from streamapp.analytics.tables.store import Version
from streamapp.api.insight import MOST_BYTES, AppInsight, Patch, RestoreRate, parse, to_json
from tests.analytics.insight.test_scores import holds, restored
from tests.analytics.support.handmade import DOWNTIME, write


@pytest.mark.parametrize("error", [ValueError("p10: less than 0"), OSError("no space left")])
def test_insight_that_cannot_be_written_ends_only_a_command_that_was_to_bring_it_to_the_operator(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(cli, "write_insight", refuse)
    found = cli._print_insight(tmp_path)
    assert f"no insight is written, the tables are whole: {error}" in capsys.readouterr().err
    cli._print_publication(found, None)
    with pytest.raises(AnalyticsError) as refused:
        cli._print_publication(found, Destination("streamapp-system", "streamapp-insight", ""))
    assert refused.value.why == "no insight could be written"


NOW = datetime(2026, 11, 12, tzinfo=UTC)
PIECE = Found(
    knob="HorizontalPodAutoscaler scaleUp window",
    current="not in the record",
    proposed="5m",
    evidence="14 changes up\nwere taken back",
    days=28,
    n=14,
    effect=Effect(11, 14.0, 14.0, "flap pairs fewer a day"),
    vetoes=("see that the lag allows it",),
    patch={"spec": {"maxReplicas": 8}},
    object="HorizontalPodAutoscaler",
    name="orders",
)


def of_counter(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the demo's application, of the day that it began on."""
    own = {"cluster": "lab", "namespace": "demo", "app": "counter", "uid": "uid of counter", **row}
    return own if "dt" in row else {**own, "dt": row["t_start"].date().isoformat()}


def tables(root: Path) -> None:
    """Ten days of holds that waited for copies at the usual rate, in tables written by hand."""
    rows = [of_counter(row) for row in holds(lambda _: 1000.0)]
    stints = [of_counter(restored(day, 1000.0)) for day in range(1, 11)]
    write(bronze(root), {QUARANTINE: [{"raw": "{", "rule": "unparsable"}]}, Version())
    seen = [of_counter({"dt": f"2026-11-{day:02d}", "t_last": NOW}) for day in range(1, 11)]
    write(silver(root), {"s_seen": seen, "s_decision_interval": rows, "s_learner_stint": stints})
    write(gold(root), {"g_downtime_daily": [of_counter({"dt": "2026-11-10", **DOWNTIME})]})


def test_insight_has_the_score_of_learned_rates_and_is_good_for_the_operator(tmp_path: Path) -> None:
    tables(tmp_path)
    (path, insight), *more = write_insight(tmp_path, NOW).items()
    assert (path, more) == (tmp_path / "insight.json", [])
    assert parse(path.read_bytes(), "lab", NOW) == insight
    (app,) = insight.apps
    assert (app.app, app.uid, app.days) == ("counter", "uid of counter", 10)
    assert app.learned_eta is not None
    assert app.learned_eta.rates == {"0": 1000.0}
    assert app.learned_eta.score.is_good
    # Every look of these tables is without an estimate of the operator.
    assert app.eta is None
    waits = {
        (row["hold_id"], row["blocking"][0]["lag"]) for row in held_looks(tmp_path, ["2026-11-03"]).table.to_pylist()
    }
    assert waits == {(f"3-{nth}", 50_000) for nth in range(10)}


def test_a_piece_of_advice_keeps_its_figures_its_effect_and_its_patch() -> None:
    told = _advice(PIECE)
    assert (told.evidence, told.n, told.days) == ("14 changes up were taken back", 14, 28)
    assert told.effect is not None
    assert (told.effect.low, told.effect.high) == (11.0, 14.0)
    assert told.patch == Patch(kind="HorizontalPodAutoscaler", name="orders", patch='{"spec": {"maxReplicas": 8}}')


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"name": "NAME"}, Patch(kind="HorizontalPodAutoscaler", patch='{"spec": {"maxReplicas": 8}}')),
        ({"object": "Role"}, None),
        ({"patch": None}, None),
        ({"patch": {"a": "x" * 2000}}, None),
    ],
    ids=["a placeholder", "another kind", "no patch", "a long patch"],
)
def test_a_patch_is_for_an_object_that_there_can_be(changed: dict[str, Any], expected: Patch | None) -> None:
    assert _advice(replace(PIECE, **changed)).patch == expected


def test_what_has_no_room_is_left_out_and_counted() -> None:
    long = _advice(replace(PIECE, evidence="x" * 5000, vetoes=("y" * 1024,) * 8))
    rates = tuple(
        RestoreRate(subtopology="0", volume=f"v{n}", p10=1.0, p50=1.0, p90=1.0, n=1, days=1) for n in range(200)
    )
    app = AppInsight(namespace="demo", app="counter", uid="u", restore_rates=rates, advice=(long,) * 8)
    few = _fitting("lab", [app] * 4, NOW)
    assert len(few.apps) == 4
    assert few.apps[0] == app
    some = _fitting("lab", [app] * 40, NOW)
    assert ({len(one.advice) for one in some.apps}, some.apps[0].restore_rates, some.left_out) == ({2}, (), 0)
    many = _fitting("lab", [app] * 60, NOW)
    assert len(to_json(many)) <= MOST_BYTES
    assert len(many.apps) + many.left_out == 60
