"""The report of `doctor`: `doctor_screen(report)`. Pure.

It fits into 80 columns. In a wider terminal each fix stands beside its finding.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from streamapp.api.http.messages import FindingTold
from streamapp.cli.model.doctor_report import DoctorReport, ReportPart
from streamapp.cli.model.phrases import LABELS
from streamapp.cli.text.sanitize import plain
from streamapp.core.doctor.diagnoses import FindingKind, Severity

_ROOMY = 110
_MARKS = {
    Severity.ERROR.value: ("✗", "x", "bold red", "error"),
    Severity.WARNING.value: ("!", "!", "bold yellow", "warning"),
    Severity.NOTE.value: ("i", "i", "cyan", "note"),
    FindingKind.UNCHECKED.value: ("?", "?", "magenta", "not checked"),
    FindingKind.UNSEEN.value: ("·", "-", "dim", "cannot be seen"),
}
_ORDER = list(_MARKS)


@dataclass(frozen=True, slots=True)
class _Row:
    """One finding, or several unchecked ones with one cause."""

    sort: str
    codes: tuple[str, ...]
    first: FindingTold


@dataclass(frozen=True, slots=True)
class _Screen:
    """The layout for one width."""

    report: DoctorReport

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the parts and the counts."""
        for part in (self.report.cluster, *self.report.apps):
            yield from self._part(part, options)
            yield Text("")
        yield _count(self.report)

    def _part(self, part: ReportPart, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield _heading(part)
        if part.title == "cluster":
            yield Text("")
        rows = sorted(_rows(part.findings), key=lambda row: _ORDER.index(row.sort))
        if rows:
            yield _table(rows, ascii_only=options.ascii_only, roomy=options.max_width >= _ROOMY)
        yield from _last_conditions(part)
        if part.fine:
            yield Text(f"{len(part.fine)} checked and in order", style="green")


def doctor_screen(report: DoctorReport) -> RenderableType:
    """Show the findings, the worst of each part first."""
    return _Screen(report)


def _last_conditions(part: ReportPart) -> Iterator[RenderableType]:
    if not part.last_conditions:
        return
    yield Text(f"The operator did not answer. Conditions of the last status, from {part.facts.get('statusFrom', '?')}:")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("condition", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("reason", overflow="fold")
    for condition in part.last_conditions:
        table.add_row(condition.type, condition.status, Text(f"{condition.reason}: {plain(condition.message)}"))
    yield table


def _heading(part: ReportPart) -> RenderableType:
    if part.title != "cluster":
        return Text.assemble((part.title, "bold"), "  ", plain(part.facts.get("state", "")))
    facts = Table.grid(padding=(0, 1, 0, 0))
    facts.add_column(width=LABELS, style="dim")
    facts.add_column(overflow="fold")
    for label, words in part.facts.items():
        facts.add_row(label, Text(plain(words)))
    return facts


def _table(rows: Sequence[_Row], *, ascii_only: bool, roomy: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=roomy, header_style="dim", expand=roomy)
    table.add_column("", width=1)
    table.add_column("what", ratio=3, overflow="fold")
    if roomy:
        table.add_column("fix", ratio=2, overflow="fold")
    for row in rows:
        full, plain_mark, style, _ = _MARKS[row.sort]
        mark = Text(plain_mark if ascii_only else full, style=style)
        finding = _finding(row, style)
        if roomy:
            table.add_row(mark, finding, _fix(row))
        else:
            fix = _fix(row)
            table.add_row(mark, Group(finding, Text.assemble(("fix: ", "dim"), fix)) if fix.plain else finding)
    return table


def _finding(row: _Row, style: str) -> Text:
    first = row.first
    detail = plain(first.detail)
    if row.sort in {FindingKind.UNCHECKED.value, FindingKind.UNSEEN.value}:
        verb = "could not be checked" if row.sort == FindingKind.UNCHECKED.value else "cannot be seen"
        return Text.assemble((", ".join(row.codes), style), f" {verb}: {detail}")
    text = Text.assemble((first.code, style), f"  {plain(first.title)}")
    return text.append(f"\n{detail}", style="bold") if detail else text


def _fix(row: _Row) -> Text:
    return Text(plain(row.first.fix)) if row.first.kind == FindingKind.FOUND.value else Text("")


def _rows(findings: Iterable[FindingTold]) -> Iterator[_Row]:
    """A row for each finding, and one for all unchecked findings with one cause."""
    together: dict[tuple[str, str], list[FindingTold]] = {}
    for finding in findings:
        if finding.kind == FindingKind.FOUND.value:
            sort = finding.severity if finding.severity in _MARKS else Severity.WARNING.value
            yield _Row(sort, (finding.code,), finding)
        else:
            sort = finding.kind if finding.kind in _MARKS else FindingKind.UNCHECKED.value
            together.setdefault((sort, finding.detail), []).append(finding)
    for (sort, _), alike in together.items():
        yield _Row(sort, tuple(finding.code for finding in alike), alike[0])


def _count(report: DoctorReport) -> Text:
    counts = report.counts()
    problems = [
        f"{counts[name]} {name[:-1] if counts[name] == 1 else name}"
        for name in ("errors", "warnings", "notes")
        if counts[name]
    ]
    rest = [f"{counts['unchecked']} not checked"] * bool(counts["unchecked"])
    rest += [f"{counts['unseen']} cannot be seen"] * bool(counts["unseen"])
    rest.append(f"{counts['fine']} in order")
    style = "red" if counts["errors"] else "yellow" if counts["warnings"] else "green"
    return Text.assemble((", ".join(problems) or "no problems", f"bold {style}"), f"; {', '.join(rest)}")
