"""The charts with an axis of time, which share one span: what is chosen in one is shown in all.

The page sets `since` and `until`, milliseconds since 1970, and takes what a user drags over as `span`.
"""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from streamapp.analytics.gold.daily import SKEWED
from streamapp.analytics.report.timeline.events import CRASH, KINDS

SINCE: Final = "since"
UNTIL: Final = "until"
STOOD: Final = "#E5202E"
"""A task that does not run; no pod has this colour."""
INK: Final = "{ink}"
"""Stands for the colour of text, which differs with the ground."""
TIMES: Final = {
    "year": "%Y",
    "month": "%b %Y",
    "date": "%b %d",
    "hours": "%H:%M",
    "minutes": "%H:%M",
    "seconds": "%H:%M:%S",
    "milliseconds": "%H:%M:%S.%L",
}
UTC_TIME = alt.Axis(title="time (UTC)", labelOverlap=True, tickCount=8, format=TIMES)


def _time(field: str) -> alt.X:
    shown = alt.Scale(type="utc", domainMin=alt.ExprRef(SINCE), domainMax=alt.ExprRef(UNTIL), nice=False)
    return alt.X(f"{field}:T", scale=shown, axis=UTC_TIME)


def _utc(chart: Any, *fields: str) -> Any:
    """Times as text for tooltips, which would show them in the reader's own zone."""
    texts = {f"{field}_utc": f"utcFormat(datum['{field}'], '%Y-%m-%d %H:%M:%S') + ' UTC'" for field in fields}
    return chart.transform_calculate(**texts)


def _span() -> Any:
    """What a user drags over; the page shows it in every chart."""
    return alt.selection_interval(name="span", encodings=["x"])


def _marks() -> Any:
    """Crashes, rollouts and images, at the top of a chart."""
    base = _utc(alt.Chart(alt.NamedData("marks")), "t")
    colour = alt.condition(f"datum.kind == '{CRASH}'", alt.value(STOOD), alt.value("#8c8c8c"))
    rule = base.mark_rule(clip=True, strokeDash=[2, 3]).encode(x=_time("t"), color=colour)
    head = base.mark_point(clip=True, filled=True, size=70, opacity=1, yOffset=6).encode(
        x=_time("t"),
        y=alt.value(0),
        color=colour,
        shape=alt.Shape("kind:N", title=None, scale=alt.Scale(domain=list(KINDS)), legend=alt.Legend(orient="top")),
        tooltip=["t_utc:N", "text:N"],
    )
    return rule + head


def of_reason(reasons: Sequence[str], channel: Any = alt.Color) -> Any:
    """Reasons of holds, in the colours that they have on all pages."""
    return channel("reason:N", title="held because", scale=alt.Scale(domain=list(reasons)))


def timeline(reasons: Sequence[str]) -> Any:
    """Replicas over time, with holds and marks."""
    holds = (
        _utc(alt.Chart(alt.NamedData("holds")), "from", "to")
        .mark_rect(clip=True, opacity=0.55, strokeWidth=2)
        .encode(
            x=_time("from"),
            x2="to:T",
            fill=of_reason(reasons, alt.Fill),
            stroke=of_reason(reasons, alt.Stroke),
            tooltip=["why:N", "hold:N", "from_utc:N", "to_utc:N"],
        )
    )
    names = ["desired", "granted", "actual"]
    lines = (
        _utc(alt.Chart(alt.NamedData("replicas")), "t")
        .transform_fold(names, as_=["number", "replicas"])
        .mark_line(clip=True, interpolate="step-after", strokeWidth=2)
        .encode(
            x=_time("t"),
            y=alt.Y("replicas:Q", title="replicas (pods)", axis=alt.Axis(format="d", tickMinStep=1)),
            color=alt.Color(
                "number:N",
                title=None,
                legend=alt.Legend(orient="top"),
                scale=alt.Scale(domain=names, range=["#D55E00", INK, "#8C8C8C"]),
            ),
            strokeDash=alt.StrokeDash(
                "number:N",
                title=None,
                legend=alt.Legend(orient="top"),
                scale=alt.Scale(domain=names, range=[[5, 3], [1, 0], [2, 2]]),
            ),
            tooltip=["t_utc:N", "desired:Q", "granted:Q", "actual:Q", "ready:Q"],
        )
        .add_params(_span())
    )
    return alt.layer(holds, lines, _marks()).properties(height=240)


def strip(_reasons: Sequence[str]) -> Any:
    """Which pod ran which task, and when the task did not run."""
    y = alt.Y("task:N", sort=None, title="task")
    stays = (
        _utc(alt.Chart(alt.NamedData("stays")), "from", "to")
        .mark_bar(clip=True, height=11)
        .encode(
            x=_time("from"),
            x2="to:T",
            y=y,
            color=alt.Color("pod:N", title=None),
            tooltip=["task:N", "pod:N", "from_utc:N", "to_utc:N"],
        )
        .add_params(_span())
    )
    base = _utc(alt.Chart(alt.NamedData("stood")), "from", "to")
    tip = ["task:N", "cause:N", alt.Tooltip("text:N", title="did not run"), "from_utc:N", "to_utc:N"]
    gap = base.mark_bar(clip=True, height=13, color=STOOD).encode(x=_time("from"), x2="to:T", y=y, tooltip=tip)
    # A second is no pixel of a day.
    seen = base.mark_tick(clip=True, thickness=2, size=13, color=STOOD).encode(x=_time("from"), y=y, tooltip=tip)
    return alt.layer(stays, gap, seen, _marks()).properties(height=alt.Step(14))


def skew(_reasons: Sequence[str]) -> Any:
    """How evenly tasks were spread."""
    line = (
        _utc(alt.Chart(alt.NamedData("skew")), "t")
        .mark_line(clip=True, interpolate="step-after", point=alt.OverlayMarkDef(size=18))
        .encode(
            x=_time("t"),
            y=alt.Y("imbalance:Q", title="busiest thread over best (ratio)", scale=alt.Scale(zero=False, domainMin=1)),
            tooltip=["t_utc:N", "imbalance:Q", alt.Tooltip("share:Q", format=".0%"), "members:Q"],
        )
        .add_params(_span())
    )
    bad = alt.Chart().mark_rule(strokeDash=[4, 4], color="#D55E00").encode(y=alt.datum(SKEWED))
    return alt.layer(line, bad, data=alt.NamedData("skew")).properties(height=180)


def rebalances(_reasons: Sequence[str]) -> Any:
    """Each new assignment, with the tasks that moved."""
    base = _utc(alt.Chart(alt.NamedData("rebalances")), "t").transform_calculate(
        kind="datum.back > 0 ? 'some moved back' : 'moved'"
    )
    y = alt.Y("moved:Q", title="tasks moved (count)", axis=alt.Axis(tickMinStep=1, format="d"))
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=["moved", "some moved back"]))
    tip = ["t_utc:N", *(f"{name}:Q" for name in ("moved", "back", "members", "joined", "left"))]
    stem = base.mark_rule(clip=True, strokeWidth=2).encode(x=_time("t"), y=y, y2=alt.datum(0), color=colour)
    head = base.mark_point(clip=True, filled=True, size=50, opacity=1).encode(
        x=_time("t"), y=y, color=colour, tooltip=tip
    )
    return alt.layer(stem, head.add_params(_span())).properties(height=180)
