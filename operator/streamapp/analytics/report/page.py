"""The report as files: one page of HTML that loads nothing, its figures as JSON, a few lines of Markdown.

Called by the command line. What is too much for a page is left out, the oldest first, and that is said on it.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import altair as alt
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from streamapp.analytics.gold.daily import SKEWED
from streamapp.analytics.report.advice.model import Advice
from streamapp.analytics.report.advice.rules import advice
from streamapp.analytics.report.advice.volumes import with_nodes
from streamapp.analytics.report.amounts import UNKNOWN, answer, count, duration, share, unit
from streamapp.analytics.report.amounts import gap as amount
from streamapp.analytics.report.charts import CHARTS, DARK, LIGHT, specifications
from streamapp.analytics.report.facts import ReportedApp, applications, newest_settings
from streamapp.analytics.report.listing import LISTINGS, Listed, exact, listed
from streamapp.analytics.report.outliers import FAR, excesses, ranked
from streamapp.analytics.report.rows import Key, Row
from streamapp.analytics.report.sentences import caveats, fleet_sentence, sentence, span
from streamapp.analytics.report.series import BARS, MOST_REASONS, OTHER, Drawn, Series, named, series, survival_rows
from streamapp.analytics.report.steps import meanings, step_figures
from streamapp.analytics.report.tables import OF_GOLD, Tables, millis, shown
from streamapp.analytics.report.timeline.events import Incident, incidents, marks, newest
from streamapp.analytics.report.whatif.listing import HEADINGS, LABEL, calibration, compared
from streamapp.analytics.report.whatif.outcome import what_if
from streamapp.api.report_link import AROUND, fragment

MOST_APPS: Final = 150
"""Applications with a page of their own; the others stand in the fleet's table."""
MOST_DRAWN: Final = 200_000
"""Rows of data under the charts of a whole report: some 15 MB."""
MOST_INCIDENTS: Final = 12
"""Incidents that stand first on a page."""
LAST: Final = timedelta(hours=24)
"""Before the end of the record: what an operator's day begins with."""
MOST_LISTED: Final = 4_000
"""Rows of each kind of table, in a whole report."""
WEEK: Final = 7
"""Days that a trend compares with as many before."""
TOP: Final = 20
"""Applications in a chart of the fleet."""
OF_APP: Final = (
    *(
        "timeline",
        "strip",
        "downtime",
        "budget",
        "gaps",
        "phases",
        "blame",
        "survival",
        "rates",
        "skew",
        "rebalances",
        "autoscaler",
    ),
)
OF_FLEET: Final = ("fleet_held", "fleet_gap", "survival")


@dataclass(frozen=True, slots=True)
class Report:
    """The content of a report."""

    tables: Tables
    apps: list[ReportedApp]
    """All applications, the most notable first."""
    made: datetime
    most_apps: int = MOST_APPS

    @property
    def paged(self) -> list[ReportedApp]:
        """The applications with a page of their own."""
        return self.apps[: self.most_apps]

    def reasons(self) -> list[str]:
        """Reasons with a colour of their own on all pages: those that held longest."""
        held: Counter[str] = Counter()
        for app in self.apps:
            held.update(app.held_by_reason)
        named = [reason for reason, _ in held.most_common(MOST_REASONS)]
        return [*named, OTHER] if len(held) > len(named) else named


def make_report(tables: Tables, made: datetime, most_apps: int = MOST_APPS) -> Report:
    """Everything that a page, a file of figures or a summary is made of."""
    return Report(tables, ranked(applications(tables)), made, most_apps)


def _in_script(value: Any) -> Markup:
    """JSON that may stand inside a script element, whatever texts are in it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704 - all that could end the script is escaped above


@cache
def _bundle() -> Markup:
    """Vega, Vega-Lite and Vega-Embed in one script, for all charts of the page."""
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    bundle: str = vl_convert.javascript_bundle(vl_version=version)  # type: ignore[call-arg] # none is wanted
    return Markup(bundle.replace("</script", "<\\/script"))  # noqa: S704 - a library's own code


def _own(name: str) -> Markup:
    return Markup((files("streamapp.analytics.report") / name).read_text())  # noqa: S704 - our own file


def _fleet_series(report: Report, reasons: Sequence[str]) -> Series:
    fleet = Series()
    held: Drawn = []
    top = [app for app in report.apps if app.held_s][:TOP]
    word, seconds = unit(max((app.held_s for app in top), default=0.0))
    for app in top:
        by_name: Counter[str] = Counter()
        for reason, of_reason in app.held_by_reason.items():
            by_name[named(reason, reasons)] += of_reason  # type: ignore[assignment]
        base = {"app": app.title, "text": duration(app.held_s)}
        held += [base | {"reason": reason, "held": value / seconds} for reason, value in by_name.items()]
    fleet.put("fleet_held", held, len(held) or 1)
    fleet.units["fleet_held"] = word
    with_gap = sorted((app for app in report.apps if app.gap), key=lambda app: -app.gap_s)
    word, seconds = unit(max((app.gap_s for app in with_gap), default=0.0))
    gaps = [{"app": app.title, "gap": app.gap_s / seconds, "text": _gap(app)} for app in with_gap[:TOP]]
    fleet.put("fleet_gap", gaps, TOP)
    fleet.units["fleet_gap"] = word
    curves = survival_rows([row for app in report.apps for row in app.rows["s_scale_episode"]])
    word, seconds = unit(max((row["after"] for row in curves), default=0.0))
    fleet.put("survival", [row | {"after": round(row["after"] / seconds, 4)} for row in curves], 4_000)
    fleet.units["survival"] = word
    return fleet


def _gap(app: ReportedApp) -> str:
    return app.gap.gap if app.gap else UNKNOWN


def _stood(app: ReportedApp) -> str:
    """Task-seconds without processing, as the range that they are."""
    lost = app.downtime
    words = amount(lost.at_most_s, lost.at_most_s - lost.at_least_s) if lost.n else "no task"
    return f"{words}, {lost.open} still" if lost.open else words


def _burn(app: ReportedApp) -> str:
    """The part of the newest month's budget that is used; without an objective there is no budget."""
    if not app.months:
        return UNKNOWN
    newest = app.months[-1]
    return "no objective" if newest.availability is None else share(newest.burn)


def _budget_title(app: ReportedApp) -> str:
    objective = app.months[-1].availability if app.months else None
    return "used of the month's budget" + ("" if objective is None else f" at {objective:g} %")


def anchor(key: Key) -> str:
    """The name of an application's part of the page: the same on every day."""
    plain = "-".join(re.sub("[^A-Za-z0-9.]+", "-", word).strip("-") for word in key[1:3])
    return f"app-{plain}-{sha256('/'.join(key).encode()).hexdigest()[:6]}"


def _tiles(app: ReportedApp, days: Sequence[str]) -> list[tuple[str, str]]:
    """The most important figures."""
    return [
        ("tasks stood", _stood(app)),
        (_budget_title(app), _burn(app)),
        *([("stood in seven days", _trend(app, days))] if len(days) >= 2 * WEEK else []),
        ("scale-ups converged", f"{app.up.converged} of {app.up.steps}"),
        ("half of them within", duration(app.up.median_s) if app.up.steps else "—"),
        ("scale-downs converged", f"{app.down.converged} of {app.down.steps}"),
        ("half of them within", duration(app.down.median_s) if app.down.steps else "—"),
        ("held", duration(app.held_s)),
        ("longest gap of a step", _gap(app) if app.steps else "—"),
        ("reversed within an hour", f"{app.totals['reversals']} of {app.totals['events']}"),
        ("flaps of an autoscaler", count(app.flaps)),
        ("rebalances", count(app.totals["rebalances"])),
        ("tasks moved", count(app.totals["tasks_moved"])),
    ]


def _trend(app: ReportedApp, days: Sequence[str]) -> str:
    """What stood in the newest seven days of a report, beside the seven before them."""
    lost = {row["dt"]: row["at_most_s"] for row in app.rows["g_downtime_daily"]}
    now, before = (sum(lost.get(day, 0.0) for day in part) for part in (days[-WEEK:], days[-2 * WEEK : -WEEK]))
    return f"{duration(now)}, {duration(before)} before"


def _link(title: str, one: Incident) -> str:
    return fragment(title, one.since - AROUND, one.until + AROUND)


def _broken(report: Report) -> list[tuple[str, Incident]]:
    """What did not run at the end of the record, or in its last day."""
    end = max((app.last for app in report.apps), default=report.made)
    every = ((app.title, incidents(app.rows["s_outage"])) for app in report.apps)
    return newest(every, end - LAST)


def _settings(app: ReportedApp) -> list[tuple[str, str]]:
    newest = newest_settings(app.rows)
    if not newest:
        return []
    words = ("application_id", "image", "tasks", "learner_source", "standby_replicas", "acceptable_recovery_lag")
    found = [(name.replace("_", " "), exact(newest[name]) or UNKNOWN) for name in (*words, "scale_down_policy")]
    return [*found, *_clients(newest)]


def _clients(newest: Row) -> list[tuple[str, str]]:
    """What agents told of the clients: how long a process that died keeps its tasks, and why."""
    told = {
        "Kafka Streams": ", ".join(newest["streams_versions"] or ()),
        "heartbeat interval": duration(newest["heartbeat_seconds"]),
        "session timeout": duration(newest["session_timeout_seconds"]),
        "static members": answer(newest["is_static"]),
        "leaves the group on close": answer(newest["leaves_on_close"]),
    }
    return [(name, value or UNKNOWN) for name, value in told.items()]


def _page(
    report: Report, app: ReportedApp, reasons: Sequence[str], found: Sequence[Advice]
) -> tuple[dict[str, Any], Series]:
    """The values of an application for the template."""
    share_of = max(1, len(report.paged))
    drawn = series(app, reasons, max(100, MOST_DRAWN // share_of // 10))
    most = max(20, min(500, MOST_LISTED // share_of))
    tables: dict[str, list[Listed]] = {}
    for table, how in LISTINGS.items():
        rows = app.rows[table]
        if rows:
            tables.setdefault(how.under, []).append(listed(table, rows, most))
    page = {
        "id": anchor(app.key),
        "app": app,
        "title": app.name,
        "sentence": sentence(app),
        "advice": found,
        "tiles": _tiles(app, report.tables.days),
        "incidents": [(app.title, one) for one in incidents(app.rows["s_outage"])[:MOST_INCIDENTS]],
        "most_incidents": MOST_INCIDENTS,
        "marks": marks(app.rows)[-most:],
        "what_if": what_if(app.rows),
        "shows": (millis(app.first), millis(app.last)),
        "settings": _settings(app),
        "charts": [(name, CHARTS[name]) for name in OF_APP],
        "tables": tables,
        "left_out": drawn.left_out,
        "drawn": drawn.data,
        "steps": app.steps[-BARS:],
        "meanings": meanings(app.steps[-BARS:]),
        "steps_left_out": max(0, len(app.steps) - BARS),
        "seen": f"{shown(app.first)} to {shown(app.last)} UTC",
    }
    return page, drawn


def _environment() -> Environment:
    """Jinja, with what a template shows figures by."""
    environment = Environment(
        loader=PackageLoader("streamapp.analytics.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"duration": duration, "count": count, "script": _in_script, "exact": exact, "moment": shown}
    environment.globals |= {
        "amount": amount,
        "anchor": anchor,
        "burn": _burn,
        "gap": _gap,
        "link": _link,
        "millis": millis,
        "stood": _stood,
    }
    return environment


def html(report: Report) -> str:
    """The page: everything is inside it, and its policy forbids it to load anything."""
    reasons = report.reasons()
    fleet = _fleet_series(report, reasons)
    pages, data = [], {"fleet": {"data": fleet.data, "units": fleet.units}}
    found = all_advice(report.tables)
    for app in report.paged:
        page, drawn = _page(report, app, reasons, found[app.title])
        pages.append(page)
        data[page["id"]] = {"data": drawn.data, "units": drawn.units}
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            pages=pages,
            data=data,
            fleet_charts=[(name, CHARTS[name]) for name in OF_FLEET],
            fleet=fleet,
            skewed=f"{SKEWED:g}",
            sentence=fleet_sentence(report.apps, report.tables) if report.apps else "No application is in the record.",
            caveats=caveats(report.tables),
            broken=_broken(report),
            most_incidents=MOST_INCIDENTS,
            excesses=excesses(report.apps),
            far=f"{FAR:g}",
            what_if={"headings": HEADINGS, "label": LABEL, "rows": compared, "calibration": calibration},
            span=span(report.apps),
            made=shown(report.made, seconds=False),
            specifications={
                name: {"data": CHARTS[name].data, "spec": s} for name, s in specifications(reasons).items()
            },
            palettes={"light": LIGHT, "dark": DARK},
            libraries={"Altair": alt.__version__, "Vega-Lite": alt.SCHEMA_VERSION.lstrip("v")},
            bundle=_bundle(),
            style=_own("page.css"),
            code=_own("page.js"),
        )
    )


def figures(report: Report) -> dict[str, Any]:
    """The same for programs: gold row by row, unrounded, and the words; seconds, slots, UTC."""
    found = all_advice(report.tables)
    return {
        "made": report.made.astimezone(UTC).isoformat(),
        "days": list(report.tables.days),
        "versions": dict(report.tables.versions),
        "sentence": fleet_sentence(report.apps, report.tables) if report.apps else "",
        "not_known": caveats(report.tables),
        "applications": [
            {
                "cluster": app.key[0],
                "namespace": app.key[1],
                "app": app.name,
                "uid": app.key[3],
                "first": app.first.isoformat(),
                "last": app.last.isoformat(),
                "sentence": sentence(app),
                "advice": [asdict(one) for one in found[app.title]],
                "not_known": list(app.unknown),
                "up": asdict(app.up),
                "down": asdict(app.down),
                "held_s": app.held_s,
                "downtime": asdict(app.downtime),
                "months": [{**asdict(month), "burn": month.burn} for month in app.months],
                "grades": dict(app.grades),
                "steps": [{**_plain([cost.row])[0], **step_figures(cost)} for cost in app.steps],
                "gaps": _plain(app.rows["s_downtime"]),
                "gold": {table: _plain(app.rows[table]) for table in OF_GOLD},
            }
            for app in report.apps
        ],
    }


def _plain(rows: Sequence[Row]) -> list[dict[str, Any]]:
    def value(item: Any) -> Any:
        if isinstance(item, datetime):
            return item.isoformat()
        return dict(item) if isinstance(item, list | Mapping) else item

    return [{name: value(item) for name, item in row.items()} for row in rows]


def all_advice(tables: Tables) -> dict[str, list[Advice]]:
    """The advice for each application by its namespace and name, also where there is nothing to advise."""
    every = {f"{key[1]}/{key[2]}": tables.of(key) for key in sorted(tables.rows["s_seen"].spans)}
    profiles = {title: rows["g_restore_profile"] for title, rows in every.items()}
    return with_nodes({title: advice(rows) for title, rows in every.items()}, profiles)


def markdown(report: Report, most: int = 20) -> str:
    """A summary for a pull request or a chat."""

    def cell(text: str) -> str:
        """A name that neither breaks the table nor becomes markup."""
        return escape(text, quote=False).replace("|", "\\|").replace("\n", " ")

    lines = ["# What scaling cost", "", cell(fleet_sentence(report.apps, report.tables)) if report.apps else "", ""]
    lines += ["| application | stood | up | down | held | longest gap | reversed |", f"|{' --- |' * 7}"]
    for app in report.apps[:most]:
        up, down = (f"{way.converged}/{way.steps}, P50 {duration(way.median_s)}" for way in (app.up, app.down))
        turned = f"{app.totals['reversals']}/{app.totals['events']}"
        lines.append(
            f"| {cell(app.title)} | {_stood(app)} | {up} | {down} | {duration(app.held_s)} | {_gap(app)} | {turned} |"
        )
    if len(report.apps) > most:
        lines += ["", f"{len(report.apps) - most} more applications are in the page."]
    told = [
        f"- {cell(title)}: {cell(' '.join(one.text.split()))}"
        for title, pieces in all_advice(report.tables).items()
        for one in pieces
        if not one.is_empty
    ]
    lines += ["", "Advice:", "", *(told[:most] or ["- nothing to advise"])]
    if len(told) > most:
        lines += [f"- {len(told) - most} more: `streamapp-analytics advise`"]
    notes = [*caveats(report.tables), *(f"{app.name}: {note}" for app in report.apps[:most] for note in app.unknown)]
    lines += ["", "Not known:", "", *(f"- {cell(note)}" for note in notes)] if notes else []
    return "\n".join([*lines, "", f"{span(report.apps)}; made {shown(report.made, seconds=False)} UTC.", ""])


def write(path: Path, text: str) -> None:
    """Put a file in its place as a whole."""
    draft = path.with_name(f".{path.name}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
