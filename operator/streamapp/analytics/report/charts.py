"""The charts, each once for the whole page: a page's own data is put under them when it is shown."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt

from streamapp.analytics.gold.daily import SKEWED
from streamapp.analytics.report.series import PHASES
from streamapp.analytics.report.timeline import charts as timed
from streamapp.analytics.report.timeline.charts import SINCE, UNTIL, of_reason
from streamapp.analytics.silver.outages import CAUSES

UNIT: Final = "{unit}"
"""Stands in titles for the unit that the data says."""
# After Okabe and Ito: distinct for most people with a colour vision deficiency. The first and last depend on the theme.
LIGHT: Final = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#B8A800", "#8C8C8C", "#333333")
DARK: Final = ("#4FA8E0", "#E69F00", "#1FBF92", "#F0793A", "#D991B8", "#8CCBF2", "#F0E442", "#9A9A9A", "#DDDDDD")


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with what a person needs to read it."""

    title: str
    note: str
    """What is seen, in a sentence."""
    empty: str
    """What stands there where there is nothing to draw."""
    data: str
    """The data it cannot do without."""
    make: Callable[[Sequence[str]], Any]


def _within(chart: Any, lasts: int = 0) -> Any:
    """What began within the chosen time, or lasts into it for so many milliseconds."""
    return chart.transform_filter(f"datum.t + {lasts} >= {SINCE} && datum.t <= {UNTIL}")


def _gaps(_reasons: Sequence[str]) -> Any:
    base = _within(alt.Chart(alt.NamedData("gaps"))).encode(y=alt.Y("step:N", sort=None, title="step"))
    tip = ["step:N", alt.Tooltip("text:N", title="gap")]
    x = alt.X("low:Q", title=f"longest gap of a task ({UNIT})", scale=alt.Scale(zero=True))
    span = base.mark_bar(height=8, opacity=0.45).encode(x=x, x2="high:Q", tooltip=tip)
    most = base.mark_tick(thickness=3, size=16).encode(x="high:Q", tooltip=tip)
    return alt.layer(span, most).properties(height=alt.Step(22))


def _downtime(_reasons: Sequence[str]) -> Any:
    return (
        _within(alt.Chart(alt.NamedData("downtime")), 86_400_000)
        .mark_bar()
        .encode(
            x=alt.X("day:O", title="day (UTC)", axis=alt.Axis(labelOverlap=True, labelAngle=0)),
            y=alt.Y("stood:Q", title=f"tasks stood ({UNIT})"),
            color=alt.Color("cause:N", title="cause", scale=alt.Scale(domain=[*CAUSES, "unknown"])),
            tooltip=["day:N", "cause:N", alt.Tooltip("text:N", title="at most")],
        )
        .properties(height=180)
    )


def _phases(_reasons: Sequence[str]) -> Any:
    return (
        _within(alt.Chart(alt.NamedData("phases")))
        .mark_bar(stroke="#8884", strokeWidth=0.5)
        .encode(
            y=alt.Y("step:N", sort=None, title="step"),
            x=alt.X("from:Q", title=f"time since the change of desired replicas ({UNIT})"),
            x2="to:Q",
            color=alt.Color("phase:N", scale=alt.Scale(domain=list(PHASES)), title="phase"),
            tooltip=["step:N", "phase:N", alt.Tooltip("text:N", title="took"), "outcome:N"],
        )
        .properties(height=alt.Step(22))
    )


def _rates(_reasons: Sequence[str]) -> Any:
    y = alt.Y("sub:N", title="subtopology")
    points = (
        _within(alt.Chart(alt.NamedData("stints")))
        .mark_point(size=45)
        .encode(
            y=y,
            x=alt.X("rate:Q", title="restore rate (slots/s)", axis=alt.Axis(format="~s"), scale=alt.Scale(zero=True)),
            shape=alt.Shape("grade:N", title="grade", scale=alt.Scale(domain=["A", "B", "C", "D"])),
            tooltip=[
                "task:N",
                "pod:N",
                "where:N",
                alt.Tooltip("rate:Q", format=",.0f"),
                "grade:N",
                alt.Tooltip("at:N"),
            ],
        )
    )
    sound = points.transform_filter("datum.where == ''").encode(color=alt.value("#8c8c8c"))
    slow = points.transform_filter("datum.where != ''").encode(color=alt.Color("where:N", title="slow volume"))
    base = alt.Chart(alt.NamedData("rates"))
    tip = [alt.Tooltip(f"{name}:Q", format=",.0f") for name in ("p10", "p50", "p90", "n")]
    span = base.mark_rule(strokeWidth=8, opacity=0.35, color="#8c8c8c").encode(y=y, x="p10:Q", x2="p90:Q", tooltip=tip)
    middle = base.mark_tick(thickness=3, size=26, color="#8c8c8c").encode(y=y, x="p50:Q", tooltip=tip)
    return alt.layer(span, middle, sound, slow).properties(height=alt.Step(40))


def _blame(reasons: Sequence[str]) -> Any:
    return (
        alt.Chart(alt.NamedData("blame"))
        .mark_bar()
        .encode(
            y=alt.Y("what:N", sort="-x", title="waited for", axis=alt.Axis(labelLimit=260)),
            x=alt.X("held:Q", title=f"time held ({UNIT})"),
            color=of_reason(reasons),
            tooltip=["what:N", "reason:N", alt.Tooltip("text:N", title="held")],
        )
        .properties(height=alt.Step(22))
    )


def _autoscaler(_reasons: Sequence[str]) -> Any:
    kinds = ["changes", "taken back", "flaps", "wasted"]
    return (
        _within(alt.Chart(alt.NamedData("autoscaler")), 86_400_000)
        .mark_bar()
        .encode(
            x=alt.X("day:O", title="day (UTC)", axis=alt.Axis(labelOverlap=True, labelAngle=0)),
            xOffset=alt.XOffset("kind:N", sort=kinds),
            y=alt.Y("n:Q", title="changes of desired replicas (count)", axis=alt.Axis(tickMinStep=1, format="d")),
            color=alt.Color("kind:N", title=None, scale=alt.Scale(domain=kinds)),
            tooltip=["day:N", "kind:N", "n:Q"],
        )
        .properties(height=180)
    )


def _survival(_reasons: Sequence[str]) -> Any:
    ways = ["scale-up", "scale-down"]
    colour = alt.Color("way:N", title=None, scale=alt.Scale(domain=ways))
    dash = alt.StrokeDash("way:N", title=None, scale=alt.Scale(domain=ways, range=[[1, 0], [6, 3]]))
    x = alt.X("after:Q", title=f"time since the change of desired replicas ({UNIT})")
    y = alt.Y("left:Q", title="not converged yet (%)", axis=alt.Axis(format=".0%"), scale=alt.Scale(domain=[0, 1]))
    base = alt.Chart(alt.NamedData("survival"))
    line = base.mark_line(interpolate="step-after").encode(x=x, y=y, color=colour, strokeDash=dash)
    ended = (
        base.transform_filter("datum.censored > 0")
        .mark_point(shape="cross", filled=True, size=70, opacity=1)
        .encode(
            x=x, y=y, color=colour, tooltip=["way:N", "after:Q", alt.Tooltip("censored:Q", title="not observed longer")]
        )
    )
    return alt.layer(line, ended).properties(height=220)


def _fleet_bars(data: str, field: str, title: str, *, stacked: bool) -> Callable[[Sequence[str]], Any]:
    def make(reasons: Sequence[str]) -> Any:
        bars = alt.Chart(alt.NamedData(data)).mark_bar()
        colored = bars.encode(
            y=alt.Y("app:N", sort="-x", title="application", axis=alt.Axis(labelLimit=260)),
            x=alt.X(f"{field}:Q", title=title),
            tooltip=["app:N", *(["reason:N"] if stacked else []), alt.Tooltip("text:N", title="in all")],
        )
        return (colored.encode(color=of_reason(reasons)) if stacked else colored).properties(height=alt.Step(20))

    return make


def _budget(_reasons: Sequence[str]) -> Any:
    base = _within(alt.Chart(alt.NamedData("budget")), 86_400_000)
    line = base.mark_line(point=True, interpolate="step-after").encode(
        x=alt.X("day:O", title="day (UTC)", axis=alt.Axis(labelOverlap=True, labelAngle=0)),
        y=alt.Y("used:Q", title="used of the month's budget (%)", axis=alt.Axis(format=".0%")),
        detail="month:N",
        tooltip=["day:N", alt.Tooltip("used:Q", format=".1%"), alt.Tooltip("text:N", title="stood this month")],
    )
    whole = alt.Chart().mark_rule(strokeDash=[4, 4], color="#D55E00").encode(y=alt.datum(1))
    return alt.layer(line, whole, data=alt.NamedData("budget")).properties(height=180)


CHARTS: Final[dict[str, Chart]] = {
    "timeline": Chart(
        "Desired, granted, actual",
        "Replicas over time; bands are holds, in the colour of their reason; shapes mark crashes, rollouts and images. "
        "Drag over a time to see it in all charts of the application; a double click shows all again.",
        "No decision is in the record.",
        "replicas",
        timed.timeline,
    ),
    "strip": Chart(
        "Which pod ran which task",
        "A row is a task, the colour its pod; red is a time in which it did not run, at most. The last days of the "
        "report, the tasks that stood or moved most.",
        "Which process ran which task is not in the record.",
        "stays",
        timed.strip,
    ),
    "gaps": Chart(
        "Gap per step",
        "The longest time without a running copy of a task (UTC, replicas): at most the mark, at least the start of "
        "the bar. The operator does not watch a task all the time.",
        "No gap was measured.",
        "gaps",
        _gaps,
    ),
    "downtime": Chart(
        "Downtime",
        "Seconds in which tasks did not run, summed over tasks, at most, by day and by what stopped them.",
        "No task was seen to stop.",
        "downtime",
        _downtime,
    ),
    "budget": Chart(
        "Budget of the month",
        "The seconds in which tasks did not run, summed up from the first day of each month, over those that the month "
        "allows. Above 100 % the objective is missed.",
        "The objective of the StreamApp, or its number of tasks, is not in the record, so there is no budget.",
        "budget",
        _budget,
    ),
    "phases": Chart(
        "Where the time went",
        "The phases of each step (UTC, replicas), from the change of the desired replicas to convergence or to the "
        "end of the observed time.",
        "No step is in the record.",
        "phases",
        _phases,
    ),
    "blame": Chart(
        "What held it",
        "The time of holds; tasks that blocked at the same time share it equally. The pod has the best copy of "
        "the task.",
        "No pod was held.",
        "blame",
        _blame,
    ),
    "survival": Chart(
        "How long until it converged",
        "The share of steps that had not converged after a time (Kaplan and Meier). A cross is a step without "
        "a later observation.",
        "No step is in the record.",
        "survival",
        _survival,
    ),
    "rates": Chart(
        "Restore rates",
        "Each time that a copy was behind; the grey band is the middle 80 % of grades A and B, the tick their median. "
        "A volume at less than half of its siblings' rate has a colour. Slots are offsets of changelogs, not records.",
        "No copy was behind for three samples, the least for a rate.",
        "stints",
        _rates,
    ),
    "skew": Chart(
        "Spread of tasks",
        "Stateful tasks of the busiest thread over those of the best spread; 1 is the optimum, above "
        f"{SKEWED:g} counts as bad.",
        "Which process ran which task is not in the record.",
        "skew",
        timed.skew,
    ),
    "rebalances": Chart(
        "Rebalances",
        "Each new assignment, and the number of tasks that moved.",
        "No rebalance is in the record.",
        "rebalances",
        timed.rebalances,
    ),
    "autoscaler": Chart(
        "Changes of the desired replicas",
        "Reversed: the direction changed within an hour. Flap: the reversal was at least as large. Wasted: a change in "
        "the other direction came before convergence.",
        "No day is in the record.",
        "autoscaler",
        _autoscaler,
    ),
    "fleet_held": Chart(
        "Held longest",
        "The time of holds by application and reason.",
        "No pod was held.",
        "fleet_held",
        _fleet_bars("fleet_held", "held", f"time held ({UNIT})", stacked=True),
    ),
    "fleet_gap": Chart(
        "Longest gaps",
        "The longest gap of any step, by application.",
        "No gap was measured.",
        "fleet_gap",
        _fleet_bars("fleet_gap", "gap", f"longest gap of a task ({UNIT})", stacked=False),
    ),
}


def specifications(reasons: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """The charts as Vega-Lite, without data and without the address of its schema, which nothing needs."""
    charts = {}
    for name, chart in CHARTS.items():
        specification = chart.make(reasons).properties(width="container").to_dict()
        specification.pop("$schema", None)
        specification.pop("config", None)
        # The page says what time is shown, for all charts at once.
        shown = [{"name": SINCE, "value": 0}, {"name": UNTIL, "value": 0}]
        specification["params"] = [*specification.get("params", []), *shown]
        charts[name] = specification
    return charts
