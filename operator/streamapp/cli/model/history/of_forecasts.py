"""The entries of predicted changes: what the operator predicted, beside what it saw. Pure."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from streamapp.api.http.messages import Recorded
from streamapp.cli.model.history.entries import HistoryEntry
from streamapp.cli.model.phrases import counted
from streamapp.cli.text import durations

_OUTSIDE, _SUPERSEDED = "OUTSIDE", "SUPERSEDED"


def forecast_entries(lines: Sequence[Recorded]) -> Iterator[HistoryEntry]:
    """One entry for each predicted change; while it goes on, only the prediction."""
    closed = {line.opened_at: line for line in lines if line.kind == "forecastClosed"}
    for line in lines:
        if line.kind == "forecastClosed":
            yield _entry(line, _seen(line), is_warning=line.result == _OUTSIDE or bool(line.wrong_moves))
        elif line.kind == "forecast" and line.opened_at not in closed:
            yield _entry(line, "", is_warning=False)


def _entry(line: Recorded, seen: str, *, is_warning: bool) -> HistoryEntry:
    course = f"{line.from_replicas} to {line.to_replicas}"
    parts = [part for part in (seen, f"predicted {_range(line)} and {_moves(line)}") if part]
    return HistoryEntry(
        at=line.ts, what="Forecast", message=f"{course}: {', '.join(parts)}", by="operator", is_warning=is_warning
    )


def _moves(line: Recorded) -> str:
    """How many; where brokers assign, in all ways that they can."""
    fewest, most = line.fewest_moves, line.most_moves
    if fewest is None or most is None or fewest == most:
        return counted(line.moves or 0, "move")
    return f"{fewest:,} to {most:,} moves"


def _range(line: Recorded) -> str:
    if line.p10_seconds is None or line.p90_seconds is None:
        return "no time"
    return f"{_span(line.p10_seconds)} to {_span(line.p90_seconds)}"


def _seen(line: Recorded) -> str:
    if line.result == _SUPERSEDED:
        return "another change came first"
    wrong = line.wrong_moves or 0
    tasks = "all tasks as predicted" if wrong == 0 else f"{counted(wrong, 'task')} not where predicted"
    several = f" ({line.uncertain_tasks:,} on one of several pods)" if line.uncertain_tasks else ""
    return f"took {_span(line.seen_seconds or 0.0)}, {tasks}{several}"


def _span(seconds: float) -> str:
    return durations.fine(timedelta(seconds=max(0.0, seconds)))
