"""The report from tables written by hand: it loads nothing, shows what the tables hold, and says what is unknown."""

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from streamapp.analytics.__main__ import main
from streamapp.analytics.bronze.ingest import bronze
from streamapp.analytics.build import DEFINITIONS, gold, silver
from streamapp.analytics.report import page
from streamapp.analytics.report.amounts import gap
from streamapp.analytics.report.charts import CHARTS
from streamapp.analytics.report.listing import LISTINGS, exact
from streamapp.analytics.report.survival import quantile, survival
from streamapp.analytics.report.tables import read_tables
from streamapp.analytics.tables.derived_schemas import GOLD
from streamapp.analytics.tables.store import Version
from tests.analytics.support.handmade import NASTY, at, demo, demo_gold, demo_silver, write
from tests.analytics.support.reading import records

FIRST, SECOND = (page.anchor(("lab", "demo", app, f"uid of {app}")) for app in ("counter", "second"))
NOW = datetime(2026, 11, 21, 11, tzinfo=UTC)
LOADING = {"src", "href", "srcset", "action", "data", "poster", "background", "cite", "formaction", "xlink:href"}


class Page(HTMLParser):
    """What stands in a page: what it would load, its scripts, its tables cell by cell."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.tags: Counter[str] = Counter()
        self.scripts: dict[str, str] = {}
        self.code: list[str] = []
        self.styles = ""
        self.policy = ""
        self.cells: list[tuple[str, str, str, str, str]] = []
        self._app = self._table = self._id = self._in = ""
        self._cell: tuple[str, str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.tags[tag] += 1
        self.links += [values[name] for name in LOADING if name in values]
        self.styles += values.get("style", "")
        self._in = tag
        self._id = values.get("id", "")
        self._app = values.get("data-app", "") if tag == "section" else self._app
        self._table = values.get("data-table", "") if tag == "table" else self._table
        if tag == "meta" and values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"]
        if "data-c" in values:
            self._cell = values["data-c"], values["data-v"]

    def handle_data(self, data: str) -> None:
        if self._in == "script" and self._id:
            self.scripts[self._id] = data
        elif self._in == "script":
            self.code.append(data)
        elif self._in == "style":
            self.styles += data
        elif self._cell is not None:
            self.cells.append((self._app, self._table, *self._cell, data))
            self._cell = None

    def handle_endtag(self, tag: str) -> None:
        del tag
        self._in = ""


def report_of(root: Path, days: int = 30, most_apps: int = page.MOST_APPS) -> page.Report:
    return page.make_report(read_tables(root, days), NOW, most_apps)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("demo")
    demo(place)
    return place


@pytest.fixture(scope="module")
def text(root: Path) -> str:
    return page.html(report_of(root))


def test_the_page_loads_nothing_and_its_policy_forbids_it(text: str) -> None:
    found = Page(text)
    assert found.links
    assert [link for link in found.links if not link.startswith("#")] == []
    assert "url(" not in found.styles
    assert "@import" not in found.styles
    assert not {"link", "iframe", "img", "object", "embed", "base"} & set(found.tags)
    assert found.policy.startswith("default-src 'none';")
    assert "http" not in found.policy
    assert "$schema" not in found.scripts["specifications"]
    assert '"url"' not in found.scripts["specifications"]


def test_there_is_one_bundle_however_many_charts(text: str) -> None:
    found = Page(text)
    assert [("vegaEmbed" in code, "use strict" in code[:20]) for code in found.code] == [(True, False), (True, True)]
    assert len(json.loads(found.scripts["specifications"])) == len(CHARTS)
    assert {"data-fleet", f"data-{FIRST}", f"data-{SECOND}"} <= set(found.scripts)


def test_every_figure_of_gold_that_is_shown_equals_the_table(text: str, root: Path) -> None:
    cells = Page(text).cells
    shown_tables = {table for _, table, *_ in cells if table.startswith("g_")}
    assert shown_tables == set(demo_gold("x"))
    for table in shown_tables:
        columns = {column.name: column for column in LISTINGS[table].columns}
        wanted: Counter[tuple[str, str, str, str]] = Counter()
        for row in records(root, table):
            app = "/".join(row[name] for name in ("cluster", "namespace", "app", "uid"))
            for name, column in columns.items():
                wanted[app, name, exact(row[name]), column.to_text(row[name])] += 1
        assert Counter((app, name, value, words) for app, of, name, value, words in cells if of == table) == wanted


def test_figures_are_told_as_a_person_reads_them(text: str) -> None:
    shown = {(table, name, value): words for _, table, name, value, words in Page(text).cells}
    assert shown["g_hold_blame", "blame_s", "50.125"] == "50 s"
    assert shown["g_convergence_daily", "km_p99", ""] == "unknown"
    assert shown["g_skew_daily", "max_share", "0.75"] == "75 %"
    assert shown["g_restore_profile", "rate_learned", "25000.0"] == "25,000"
    assert shown["g_autoscaler_daily", "held_replica_h", ""] == "unknown"


def test_each_application_has_a_sentence_and_what_is_not_known(root: Path) -> None:
    first, second = page.figures(report_of(root))["applications"]
    assert first["sentence"] == (
        "Tasks stood 2 times, 1.5 s to 2.2 s in total, 89 % of it by scale; the longest was task 0_1, 1.2 s. "
        "1 of 1 scale-up converged in 70 s; 1 of 1 scale-down converged in 65 s. "
        "Pods were held for 60 s, 83 % of that time by LearnersCatchingUp. "
        "The longest gap of a step was 1 s to 1.2 s. "
        "1 of 2 changes of the desired replicas were reversed within an hour. "
        "Its tasks are badly spread: the busiest thread has 1.83 times those of the best spread."
    )
    assert second["sentence"] == "0 of 1 scale-up converged while observed. The gaps of its steps are unknown."
    assert "1 step did not end while observed: the observed time counts." in second["not_known"]
    assert any("For 60 s no line of the application" in note for note in second["not_known"])
    assert not any("no line of the application" in note for note in first["not_known"])
    assert any("grade C or D" in note for note in first["not_known"])
    assert any("configuration is not in the record" in note for note in second["not_known"])
    assert any("in quarantine" in note for note in page.figures(report_of(root))["not_known"])


def test_the_figures_as_json_are_gold_to_the_digit(root: Path) -> None:
    found = json.loads(json.dumps(page.figures(report_of(root)), allow_nan=False))
    of_first = found["applications"][0]["gold"]
    assert set(of_first) == set(GOLD)
    assert [(row["reason"], row["blame_s"]) for row in of_first["g_hold_blame"]] == [
        ("LearnersCatchingUp", 50.125),
        ("FactsStale", 10.0),
    ]
    assert of_first["g_skew_daily"][0]["imbalance"] == 1.5 + 1 / 3


def test_charts_have_the_holds_by_reason_and_the_gap_with_its_error(text: str) -> None:
    data = json.loads(Page(text).scripts[f"data-{FIRST}"])["data"]
    holds = [(row["reason"], (row["to"] - row["from"]) / 1000) for row in data["holds"]]
    assert holds == [("LearnersCatchingUp", 50.0), ("FactsStale", 10.0)]
    assert [(row["desired"], row["granted"], row["actual"]) for row in data["replicas"]] == [
        (2, 2, 2),
        (3, 3, 2),
        (3, 3, 3),
        (2, 3, 3),
        (2, 2, 2),
        (2, 2, 2),
    ]
    assert [(row["low"], row["high"], row["text"]) for row in data["gaps"]] == [(1.0, 1.25, "1 s to 1.2 s")]
    assert [row["imbalance"] for row in data["skew"]] == [1.5, 1.5], "3 of 4 tasks on one of two threads"
    assert [(row["phase"], row["to"] - row["from"]) for row in data["phases"][:2]] == [
        ("grant", 1.0),
        ("restore", 69.0),
    ]


def test_every_chart_with_an_axis_of_time_shows_the_same_time(text: str) -> None:
    specifications = json.loads(Page(text).scripts["specifications"])
    brushed = {name for name, one in specifications.items() if '"name": "span"' in json.dumps(one["spec"])}
    assert brushed == {"timeline", "strip", "skew", "rebalances"}
    for name in brushed:
        words = json.dumps(specifications[name]["spec"])
        assert words.count('"domainMin": {"expr": "since"}') == words.count('"domainMax": {"expr": "until"}') > 0
    filtered = {name for name, one in specifications.items() if "<= until" in json.dumps(one["spec"])}
    assert filtered == {"downtime", "budget", "gaps", "phases", "rates", "autoscaler"}
    for one in specifications.values():
        assert {"since", "until"} <= {param["name"] for param in one["spec"]["params"]}


def broken(root: Path, *, is_open: bool = False) -> None:
    """The demo with two times in which tasks did not run, a crash and a layout."""
    demo(root)
    key = {name: demo_silver("counter", "b")["s_seen"][0][name] for name in ("cluster", "namespace", "app", "uid")}
    stood = {**key, "cause": "crash", "at_least_s": 1.0, "is_open": is_open}
    outages = [
        {**stood, "task": task, "t_stop": at(start), "t_end": at(start + long), "at_most_s": long}
        for task, start, long in (("0_0", 100, 20.0), ("0_1", 110, 30.0), ("0_1", 400, 5.0))
    ]
    pod = {**key, "ordinal": 1, "pod_uid": "u", "revision": "r", "volume": "v", "is_gone": False}
    pods = [
        {**pod, "container_id": "a", "t_start": at(0), "t_end": at(100)},
        {**pod, "container_id": "b", "t_start": at(100), "t_end": at(480)},
    ]

    def layout(start: float, end: float, *held: tuple[str, list[str]]) -> dict[str, Any]:
        holders = [
            {"process_id": who, "ordinal": n, "active": own, "standby": [], "threads": 1}
            for n, (who, own) in enumerate(held)
        ]
        return {**key, "epoch": int(start), "t_start": at(start), "t_end": at(end), "holders": holders}

    layouts = [
        layout(0, 50, ("a", ["0_0", "0_1"]), ("b", ["0_2"])),
        layout(50, 100, ("a", ["0_0"]), ("b", ["0_1", "0_2"])),
        layout(100, 480, ("a", ["0_0"]), ("b", ["0_1", "0_2"])),
    ]
    more = {"s_outage": outages, "s_pod_interval": pods, "s_layout_interval": layouts}
    write(silver(root), more, silver(root).current())


def test_incidents_come_first_with_links_to_their_time(tmp_path: Path) -> None:
    broken(tmp_path)
    text = page.html(report_of(tmp_path))
    link = "#demo/counter?since=2026-11-21T09:56:40Z&amp;until=2026-11-21T10:07:20Z"
    assert text.count(f'<a href="{link}">2026-11-21 10:01:40</a>') == 2, "in the fleet and in the application"
    assert text.index("Broken when the record ended") < text.index("<h3>Applications</h3>")
    # Two tasks within a minute are one incident of 50 s at most; the longest comes first.
    rows = re.findall(r'<td data-l="tasks">(\d+)</td>\s*<td data-l="stood, all tasks">([^<]*)</td>', text)
    assert rows == [("2", "2 s to 50 s"), ("1", "1 s to 5 s")] * 2
    open_place = tmp_path / "open"
    broken(open_place, is_open=True)
    assert "still, when the record ended" in page.html(report_of(open_place))


def test_the_strip_has_each_time_that_a_process_ran_a_task_and_each_that_it_did_not(tmp_path: Path) -> None:
    broken(tmp_path)
    data = json.loads(Page(page.html(report_of(tmp_path))).scripts[f"data-{FIRST}"])["data"]
    start = int(at(0).timestamp() * 1000)
    stays = [(row["task"], row["pod"], row["from"] - start, row["to"] - start) for row in data["stays"]]
    assert stays == [
        ("0_0", "pod 0", 0, 480_000),
        ("0_1", "pod 0", 0, 50_000),
        ("0_1", "pod 1", 50_000, 480_000),
        ("0_2", "pod 1", 0, 480_000),
    ]
    assert [(row["task"], row["from"] - start) for row in data["stood"]] == [
        ("0_0", 100_000),
        ("0_1", 110_000),
        ("0_1", 400_000),
    ]
    assert [(row["kind"], row["text"], row["t"] - start) for row in data["marks"]] == [
        ("crash", "crash: pod 1", 100_000)
    ]


def test_each_step_is_told_with_its_gap_and_what_held_it(text: str, root: Path) -> None:
    (first, _), up, down = page.figures(report_of(root))["applications"], *_steps(text, FIRST)
    assert up[1:] == ["2 → 3", "unknown", "not held", "—", "—", "70 s", "3", "user"]
    assert down == [
        *("2026-11-21 10:04:00", "3 → 2", "1 s to 1.2 s", "60 s", "LearnersCatchingUp 50 s; FactsStale 10 s"),
        *("0_1 (pod 1), 0_3 (pod 0)", "65 s", "3", "user"),
    ]
    assert "<b>LearnersCatchingUp</b>: Copies on the remaining pods are still behind." in text
    assert _steps(text, SECOND)[0][6] == "open after 3 min"
    step = first["steps"][1]
    assert (step["worst_gap_s"], step["worst_gap_err_s"], step["held_s"]) == (1.25, 0.25, 60)
    assert step["held_by"] == [
        {"reason": "LearnersCatchingUp", "seconds": 50},
        {"reason": "FactsStale", "seconds": 10},
    ]
    assert [(one["task"], one["seconds"]) for one in step["waited_for"]] == [("0_1", 30), ("0_3", 20)]


def _steps(text: str, place: str) -> list[list[str]]:
    """The cells of an application's table of steps."""
    table = text.partition(f'id="{place}-steps"')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in table.split("</tr>")[:-1]]
    return [[re.sub("<.*?>", "", cell) for cell in row] for row in rows]


@pytest.mark.parametrize(
    ("seconds", "error", "words"),
    [
        (9.16, 8.66, "0.5 s to 9.2 s"),
        (2.0, 2.0, "at most 2 s"),
        (2.0, None, "at most 2 s"),
        (2.0, 0.0, "2 s"),
        (None, None, "unknown"),
    ],
)
def test_a_gap_is_told_as_the_range_it_is(seconds: float | None, error: float | None, words: str) -> None:
    assert gap(seconds, error) == words


def test_names_cannot_become_markup(tmp_path: Path) -> None:
    demo(tmp_path, NASTY)
    made, harmless = page.html(report_of(tmp_path)), tmp_path / "harmless"
    demo(harmless)
    assert Page(made).tags == Page(page.html(report_of(harmless))).tags
    assert "<script>alert" not in made
    assert NASTY in {row["app"].split("/", 1)[1] for row in _fleet(made)["fleet_held"]}
    summary = page.markdown(report_of(tmp_path))
    assert "<script" not in summary
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in summary.splitlines() if line.startswith("|")} == {8}


def _fleet(text: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(Page(text).scripts["data-fleet"])["data"]
    return found


def test_tables_without_rows_make_a_page_that_says_so(tmp_path: Path) -> None:
    write(bronze(tmp_path), {}, Version())
    write(silver(tmp_path), {"s_seen": []})
    write(gold(tmp_path), {})
    assert "No application is in the record." in page.html(report_of(tmp_path))
    only_seen = tmp_path / "only_seen"
    write(silver(only_seen), {"s_seen": demo_silver("a", "b")["s_seen"]})
    write(gold(only_seen), {})
    text = page.html(report_of(only_seen))
    for name in page.OF_APP:
        assert text.count(CHARTS[name].empty) >= 2, name
    assert "nothing was scaled." in text
    assert "No decision is in the record" in text


def test_what_is_too_much_is_left_out_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    demo(tmp_path)
    monkeypatch.setattr(page, "MOST_LISTED", 0)
    rows = demo_gold("counter")["g_skew_daily"][0]
    more = [{**rows, "dt": f"2026-10-{day:02d}"} for day in range(1, 31)]
    version = gold(tmp_path).current()
    write(gold(tmp_path), {"g_skew_daily": more}, version)
    seen = [{**demo_silver("counter", "b")["s_seen"][0], "dt": row["dt"]} for row in more]
    write(silver(tmp_path), {"s_seen": seen}, silver(tmp_path).current())
    found = Page(page.html(report_of(tmp_path, days=25)))
    assert sum(name == "dt" for _, table, name, *_ in found.cells if table == "g_skew_daily") == 20
    text = page.html(report_of(tmp_path, days=25, most_apps=1))
    assert "4 more rows are not shown" in text
    assert "6 earlier days are left out; --days 31 shows them." in text


def test_a_configuration_from_before_the_days_of_the_report_is_still_in_force(tmp_path: Path) -> None:
    silver_rows = dict(demo_silver("counter", "second"))
    config = silver_rows.pop("s_config")[0]
    old = {"dt": "2026-09-01", "valid_from": datetime(2026, 9, 1, tzinfo=UTC)}
    gone = {**config, **old, "valid_to": datetime(2026, 9, 2, tzinfo=UTC), "application_id": "before"}
    since = {"dt": "2026-09-02", "valid_from": gone["valid_to"], "valid_to": datetime(2026, 11, 22, tzinfo=UTC)}
    later = {"dt": "2026-11-22", "valid_from": since["valid_to"], "valid_to": datetime(2026, 11, 23, tzinfo=UTC)}
    write(bronze(tmp_path), {}, Version())
    write(
        silver(tmp_path),
        {**silver_rows, "s_config": [gone, {**config, **since}, {**config, **later, "application_id": "after"}]},
    )
    write(gold(tmp_path), demo_gold("counter"))
    first = next(app for app in report_of(tmp_path, days=1).apps if app.name == "counter")
    assert [row["application_id"] for row in first.rows["s_config"]] == ["counter"]
    assert not any("configuration" in one for one in first.unknown)
    assert report_of(tmp_path, days=1).tables.days_left_out == 0, "no figure is of a day that has a configuration alone"


def test_lines_that_were_removed_before_they_were_read_are_told_by_their_numbers(tmp_path: Path) -> None:
    demo(tmp_path)
    assert "are missing, by their numbers" not in page.html(report_of(tmp_path))
    read = {"r": ((0, 99), (200, 299)), "s": ((5, 9),)}
    bronze(tmp_path).commit(replace(bronze(tmp_path).current(), recorders=read))
    assert "100 lines of the whole record are missing, by their numbers." in page.html(report_of(tmp_path))


def test_applications_without_a_page_stand_in_the_fleets_table(root: Path) -> None:
    text = page.html(report_of(root, most_apps=1))
    assert f"data-{SECOND}" not in Page(text).scripts
    assert "demo/second" in text
    assert "1 of them have no page here" in text


def test_survival_counts_what_was_not_seen_to_its_end_as_long_as_it_was_seen() -> None:
    rows = [{"observed_s": float(t), "outcome": how} for t, how in ((1, "converged"), (2, "open"), (4, "converged"))]
    assert [(one.seconds, round(one.share, 6), one.censored) for one in survival(rows)] == [
        (0.0, 1.0, 0),
        (1.0, 0.666667, 0),
        (2.0, 0.666667, 1),
        (4.0, 0.0, 0),
    ]
    assert quantile(survival(rows), 0.5) == 4.0
    assert quantile(survival(rows[:2]), 0.9) is None
    assert survival([]) == []


def test_the_command_writes_three_files_and_says_what_to_run_first(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {name: tmp_path / name for name in ("out.html", "out.json", "out.md")}
    out, as_json, as_markdown = map(str, places.values())
    arguments = ["report", "--root", str(root), "--out", out, "--json", as_json, "--markdown", as_markdown]
    assert main(arguments) == 0
    assert "2 applications, 1 days" in capsys.readouterr().out
    assert places["out.html"].stat().st_size < 1_500_000
    assert len(json.loads(places["out.json"].read_text())["applications"]) == 2
    assert (
        "| demo/counter | 1.5 s to 2.2 s | 1/1, P50 70 s | 1/1, P50 65 s | 60 s | 1 s to 1.2 s | 1/2 |"
        in places["out.md"].read_text()
    )
    for layers, step in (((), "ingest RECORD"), ((bronze,), "build"), ((bronze, gold), "build")):
        empty = tmp_path / f"with {len(layers)}"
        for layer in layers:
            write(layer(empty), {}, Version(definitions=DEFINITIONS - 1))
        assert main(["report", "--root", str(empty), "--out", out]) == 1
        assert f"next:  run `streamapp-analytics {step} --root {empty}` first" in capsys.readouterr().err
