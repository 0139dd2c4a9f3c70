"""The outcomes as one table, for a terminal and as Markdown: the same words in both. Prints nothing."""

from collections.abc import Callable, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lab.matrix.trial_result import Drain, RuntimeInfo, TrialResult, Verdict

UNKNOWN = "unknown"
NONE = "–"
TITLES = (
    *("launcher", "Streams", "JDK", "loader", "assignor in force", "drained after (s)", "gap of moved tasks (s)"),
    *("worst gap at SIGTERM (s)", "notes"),
)


def row(outcome: TrialResult) -> tuple[str, ...]:
    """Give the cells of one line; what was not measured is a dash, what could not be is `unknown`."""
    cell, runtime, drain = outcome.cell, outcome.runtime, outcome.drain
    return (
        f"{cell.launcher} {cell.release}".strip(),
        cell.streams,
        cell.java if runtime is None else runtime.java,
        *_runtime_columns(runtime),
        NONE if drain is None else f"{drain.drained_after:.1f}",
        _gap(drain, lambda each: each.gaps.moved),
        _gap(drain, lambda each: each.gaps.stop),
        "; ".join(_notes(outcome)),
    )


def _runtime_columns(runtime: RuntimeInfo | None) -> tuple[str, str]:
    if runtime is None:
        return NONE, NONE
    return _short(runtime.loader) or UNKNOWN, _short(runtime.assignor) or "none"


def _short(name: str) -> str:
    return name.rpartition(".")[2].rpartition("$")[2]


def _gap(drain: Drain | None, of: Callable[[Drain], float | None]) -> str:
    if drain is None:
        return NONE
    seconds = of(drain)
    return UNKNOWN if seconds is None else f"{seconds:.2f}"


def _notes(outcome: TrialResult) -> list[str]:
    """Say what is not in the other columns; a failure comes first."""
    notes = [f"{outcome.verdict.value}: {_line(outcome.note)}"] if outcome.note else []
    if outcome.drain is not None:
        notes += _drain_notes(outcome.drain)
    if outcome.verdict is not Verdict.STEPPED_ASIDE and outcome.runtime is not None:
        notes += [f"aside: {_line(each)}" for each in outcome.runtime.asides]
    return [*notes, f"by {outcome.cell.variable}"]


def _drain_notes(drain: Drain) -> list[str]:
    others = UNKNOWN if drain.gaps.others is None else f"{drain.gaps.others:.2f} s"
    quiet = UNKNOWN if drain.gaps.quiet is None else f"{drain.gaps.quiet:.2f} s"
    notes = [
        f"{drain.moved} tasks, learned in {drain.learned_after:.1f} s, {drain.triggered_rebalances} rebalances",
        f"others {others}, quiet {quiet}",
    ]
    if drain.lost:
        notes.insert(0, f"{drain.lost} inputs LOST")
    if drain.doubled:
        notes.append(f"{drain.doubled} doubled")
    if drain.left is False:
        notes.append("stayed in the group when it closed")
    if drain.moved_at_stop:
        notes.append(f"{drain.moved_at_stop} tasks moved at the stop")
    if drain.exit_code not in {0, 143}:
        notes.append(f"exit code {drain.exit_code}")
    return notes


def _line(text: str) -> str:
    return " ".join(text.split())


def table(outcomes: Sequence[TrialResult]) -> RenderableType:
    """Give it for a terminal: the figures as a table, and below it the notes, which are long."""
    made = Table(*TITLES[:-1], box=None, pad_edge=False, header_style="bold")
    for column in made.columns:
        column.overflow = "fold"
    notes = Text()
    for number, outcome in enumerate(outcomes, start=1):
        *figures, note = row(outcome)
        style = "red" if outcome.verdict is Verdict.FAILED else ""
        made.add_row(*figures, style=style)
        notes.append(f"\n{number}. {outcome.cell.name}: {note}", style)
    return Group(made, notes)


def markdown(outcomes: Sequence[TrialResult], began_at: datetime, records: int, rate: int) -> str:
    """Give it as Markdown, with when and under what load it was measured."""
    lines = [
        f"### Run of {began_at:%Y-%m-%d %H:%M} UTC",
        "",
        f"{records:,} words and {rate} records a second over 6 partitions; 3 processes, 0 standbys.",
        "",
        _markdown_row(TITLES),
        _markdown_row(("---",) * len(TITLES)),
        *(_markdown_row(row(outcome)) for outcome in outcomes),
        "",
        _sum(outcomes),
        "",
    ]
    return "\n".join(lines)


def _sum(outcomes: Sequence[TrialResult]) -> str:
    counts = ((verdict, sum(each.verdict is verdict for each in outcomes)) for verdict in Verdict)
    return ", ".join(f"{count} {verdict.value}" for verdict, count in counts) + "."


def _markdown_row(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
