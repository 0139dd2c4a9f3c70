"""The reports of the meter as a person reads them: renderables for any rich console.

Called by the lab's commands. Prints nothing itself. Every fact is in the words and figures: colours only repeat it, so
that nothing is missing in a pipe. All text is ASCII, and the bars become hyphens where the output takes nothing else.
80 columns are enough.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lab.meter.counts import CountReport, CountVerdict, KeyCount, Record
from lab.meter.gaps import GapReport, PartitionGap

_BAR_WIDTH = 12
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class MeasuredMove:
    """Who owned a partition before and after."""

    before: str
    after: str


def gap_table(report: GapReport, moved: Mapping[int, MeasuredMove]) -> RenderableType:
    """Show one row per input partition and the worst of the moved and of the untouched ones below.

    Args:
        report: what `measure_gaps` found.
        moved: the partitions that changed their owner within the window; all others count as untouched.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("partition", "gap", "resolution", "outputs"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, width=_BAR_WIDTH)
    table.add_column("moved", overflow="fold")
    worst = report.worst()
    longest = (worst.seconds if worst else None) or 1.0
    for row in report.partitions:
        table.add_row(*_cells(row, moved.get(row.partition), longest))
    return Group(Text(_period(report), style="dim"), table, *_summary(report, moved))


def count_summary(report: CountReport) -> RenderableType:
    """Show the totals, the verdict and the first examples of what is wrong."""
    kept = report.verdict is CountVerdict.KEPT
    promise = "exactly-once" if report.exactly_once else "at-least-once"
    lines = [
        f"{report.inputs:,} inputs of {report.keys:,} keys, {report.outputs:,} outputs, {promise}",
        *_finding("lost", report.lost, "inputs without an output", _record_texts(report.lost_examples)),
        *_finding("under", report.undercounted, "keys counted too low", _key_texts(report.undercounted_examples)),
        *_finding("doubled", report.doubled, "outputs too many", _record_texts(report.doubled_examples)),
        *_finding("over", report.overcounted, "keys counted too high", _key_texts(report.overcounted_examples)),
        *_finding(
            "foreign",
            report.foreign,
            "outputs that answer no input",
            [f"partition {example.partition} offset {example.offset}" for example in report.foreign_examples],
        ),
    ]
    return Group(*(Text(line) for line in lines), Text(_judgement(report), style="bold green" if kept else "bold red"))


def _cells(row: PartitionGap, move: MeasuredMove | None, longest: float) -> tuple[RenderableType, ...]:
    style = "yellow" if move else ""
    owner = f"{move.before} -> {move.after}" if move else "untouched"
    bar: RenderableType = ""
    if row.seconds is not None:
        bar = ProgressBar(longest, row.seconds, _BAR_WIDTH, complete_style="yellow", finished_style="yellow")
    return (
        str(row.partition),
        Text(_length(row), style=style),
        _UNKNOWN if row.resolution is None else f"{row.resolution:.2f} s",
        f"{row.outputs:,}",
        bar,
        Text(owner, style=style),
    )


def _summary(report: GapReport, moved: Mapping[int, MeasuredMove]) -> list[Text]:
    """Say the worst of both groups, and what the marks mean where they occur."""
    numbers = [row.partition for row in report.partitions]
    lines = [
        _worst("moved", report, [number for number in numbers if number in moved]),
        _worst("untouched", report, [number for number in numbers if number not in moved]),
    ]
    if any(row.at_least for row in report.partitions):
        lines.append(Text(">= at least this long: it reaches over an edge of the window", style="dim"))
    if any(row.gap is None for row in report.partitions):
        lines.append(Text("unknown: no input arrived or waited, so no output was due", style="dim"))
    return lines


def _worst(group: str, report: GapReport, numbers: Sequence[int]) -> Text:
    if not numbers:
        return Text(f"worst {group}: no partition is {group}")
    row = report.worst(numbers)
    figure = _UNKNOWN if row is None else f"{_length(row)} (partition {row.partition})"
    return Text(f"worst {group}: {figure}", style="bold")


def _length(row: PartitionGap) -> str:
    if row.gap is None:
        return _UNKNOWN
    return f"{'>= ' if row.at_least else ''}{row.gap.seconds:.2f} s"


def _period(report: GapReport) -> str:
    start, end = (
        datetime.fromtimestamp(moment / 1000, UTC).strftime("%H:%M:%S")
        for moment in (report.window.start_ms, report.window.end_ms)
    )
    return f"longest time with inputs waiting and no output, {start} to {end} UTC ({report.window.seconds:.0f} s)"


def _finding(name: str, number: int, meaning: str, examples: Sequence[str]) -> list[str]:
    lines = [f"{name:>8} {number:>9,}  {meaning}"]
    more = number - len(examples)
    lines += [f"{'':>20}{example}" for example in examples]
    return [*lines, f"{'':>20}and {more:,} more"] if examples and more > 0 else lines


def _record_texts(examples: Sequence[Record]) -> list[str]:
    return [
        f"partition {example.partition} offset {example.offset} key {example.key}: {example.outputs} outputs"
        for example in examples
    ]


def _key_texts(examples: Sequence[KeyCount]) -> list[str]:
    def count(example: KeyCount) -> str:
        return "no count" if example.final is None else f"count {example.final}"

    return [
        f"partition {example.partition} key {example.key}: {count(example)}, {example.inputs} inputs"
        for example in examples
    ]


def _judgement(report: CountReport) -> str:
    match report.verdict:
        case CountVerdict.LOST:
            return "LOST: not every input was counted"
        case CountVerdict.FOREIGN:
            return "FOREIGN: outputs answer inputs that do not exist"
        case CountVerdict.DOUBLED:
            return "DOUBLED: not every input was counted once only"
        case CountVerdict.KEPT if report.exactly_once:
            return "kept: nothing lost, nothing doubled"
        case CountVerdict.KEPT:
            return "kept: nothing lost (repeats are allowed under at-least-once)"


def markdown_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Give a table in Markdown: the first column is of names, the others of figures."""
    lines = (titles, ("---", *("---:",) * (len(titles) - 1)), *rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
