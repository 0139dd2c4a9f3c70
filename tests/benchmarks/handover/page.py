"""The tables of the benchmark, as Markdown. Pure."""

from collections.abc import Sequence

from tests.benchmarks.handover.parts import PARTS, CutGap, Summary

_GAPS = ("way", "move", "tasks", "median (s)", "worst (s)", "of those that stayed, worst (s)")


def gaps_table(summaries: Sequence[Summary]) -> str:
    """One row for each way and kind of move."""
    rows = [
        (one.way, one.kind, str(len(one.gaps)), _two(one.middle), _two(max(one.gaps)), _two(one.quiet))
        for one in summaries
    ]
    return _table(_GAPS, rows)


def parts_table(summaries: Sequence[Summary]) -> str:
    """One row for each way and kind of move: the mean of each part, in milliseconds."""
    rows = [
        (one.way, one.kind, *map(_milliseconds, (*one.parts, sum(one.parts))))
        for one in summaries
        if one.parts is not None
    ]
    return _table(("way", "move", *PARTS, "all"), rows)


def every_move(found: Sequence[CutGap]) -> str:
    """All gaps, a line for each way and kind, tasks of one turn together."""
    lines = []
    for way, kind in dict.fromkeys((one.way, one.kind) for one in found):
        turns = dict.fromkeys(one.turn for one in found if (one.way, one.kind) == (way, kind))
        gaps = "; ".join(
            " ".join(_two(one.seconds) for one in found if (one.way, one.kind, one.turn) == (way, kind, turn))
            for turn in turns
        )
        lines.append(f"- {way}, {kind}: {gaps}\n")
    return "".join(lines)


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    aligned = ("---", *("---:" for _ in titles[1:]))
    return "".join(f"| {' | '.join(row)} |\n" for row in (titles, aligned, *rows))


def _two(seconds: float) -> str:
    return f"{seconds:.2f}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f}"
