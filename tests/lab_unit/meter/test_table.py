"""What a person sees of the reports, as plain text of 80 columns."""

import io

import pytest
from rich.console import Console, RenderableType

from lab.meter.counts import CountReport, Foreign, KeyCount, Record
from lab.meter.gaps import Gap, GapReport, PartitionGap, Window
from lab.meter.table import MeasuredMove, count_summary, gap_table

WINDOW = Window(1_769_860_800_000, 1_769_860_920_000)


def gap_of(seconds: float, *, still_open: bool = False) -> Gap:
    start = WINDOW.start_ms + 5_000
    return Gap(start, start + round(seconds * 1000), before_ms=0, open=still_open)


REPORT = GapReport(
    WINDOW,
    (
        PartitionGap(0, 9_981, 9_981, gap_of(0.31), 12, 110),
        PartitionGap(1, 10_012, 10_012, gap_of(48.23), 12, 110),
        PartitionGap(2, 5_004, 5_000, gap_of(24.1, still_open=True), 12, None),
        PartitionGap(3, 0, 0, None, 120_000, None),
    ),
)
MOVED = {1: MeasuredMove("counter-2", "counter-0"), 2: MeasuredMove("counter-2", "counter-1")}


def rendered(shown: RenderableType, *, encoding: str = "utf-8") -> str:
    """Render as a pipe of this encoding takes it, without the blanks at the ends of lines."""
    pipe = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=pipe, width=80).print(shown)
    pipe.seek(0)
    return "\n".join(line.rstrip() for line in pipe.read().splitlines())


def test_the_gap_table_shows_each_partition_and_the_worst_of_both_groups() -> None:
    assert rendered(gap_table(REPORT, MOVED)) == (
        "longest time with inputs waiting and no output, 12:00:00 to 12:02:00 UTC (120 s)\n"
        "partition         gap  resolution  outputs                moved\n"
        "        0      0.31 s      0.12 s    9,981                untouched\n"
        "        1     48.23 s      0.12 s   10,012  ━━━━━━━━━━━━  counter-2 -> counter-0\n"
        "        2  >= 24.10 s     unknown    5,000  ━━━━━╸        counter-2 -> counter-1\n"
        "        3     unknown     unknown        0                untouched\n"
        "worst moved: 48.23 s (partition 1)\n"
        "worst untouched: 0.31 s (partition 0)\n"
        ">= at least this long: it reaches over an edge of the window\n"
        "unknown: no input arrived or waited, so no output was due"
    )


def test_an_ascii_pipe_shows_the_same_table_with_hyphens() -> None:
    plain = rendered(gap_table(REPORT, MOVED), encoding="ascii")

    assert plain.splitlines()[3] == "        1     48.23 s      0.12 s   10,012  ------------  counter-2 -> counter-0"
    assert [line for number, line in enumerate(plain.splitlines()) if number not in {3, 4}] == [
        line for number, line in enumerate(rendered(gap_table(REPORT, MOVED)).splitlines()) if number not in {3, 4}
    ]


@pytest.mark.parametrize(
    ("moved", "lines"),
    [
        ({}, ["worst moved: no partition is moved", "worst untouched: 48.23 s (partition 1)"]),
        (
            dict.fromkeys(range(4), MeasuredMove("a", "b")),
            ["worst moved: 48.23 s (partition 1)", "worst untouched: no partition is untouched"],
        ),
        ({3: MeasuredMove("a", "b")}, ["worst moved: unknown", "worst untouched: 48.23 s (partition 1)"]),
    ],
)
def test_a_group_without_a_figure_says_so(moved: dict[int, MeasuredMove], lines: list[str]) -> None:
    assert rendered(gap_table(REPORT, moved)).splitlines()[6:8] == lines


def test_no_line_is_wider_than_the_terminal_when_owner_names_are_long() -> None:
    moved = {1: MeasuredMove("a-rather-long-application-name-2", "a-rather-long-application-name-0")}
    lines = rendered(gap_table(REPORT, moved)).splitlines()

    assert max(len(line) for line in lines) <= 80
    assert "".join(line[58:].strip() for line in lines[3:7]).removesuffix("untouched") == (
        "a-rather-long-application-name-2 ->a-rather-long-application-name-0"
    )


def report(**found: int) -> CountReport:
    figures = dict.fromkeys(("lost", "doubled", "undercounted", "overcounted", "foreign"), 0) | found
    return CountReport(
        exactly_once=bool(found.get("exactly_once", True)),
        inputs=1_000,
        outputs=1_004,
        keys=12,
        lost=figures["lost"],
        doubled=figures["doubled"],
        undercounted=figures["undercounted"],
        overcounted=figures["overcounted"],
        foreign=figures["foreign"],
        later=0,
        lost_examples=tuple(Record(1, offset, "[red]k[/]", 0) for offset in range(min(figures["lost"], 2))),
        doubled_examples=(),
        undercounted_examples=(KeyCount(2, "k1", 3, None),) if figures["undercounted"] else (),
        overcounted_examples=(KeyCount(4, "k2", 3, 4),) if figures["overcounted"] else (),
        foreign_examples=(Foreign(0, 9),) if figures["foreign"] else (),
    )


def test_the_count_summary_shows_what_is_wrong_with_examples_as_they_are() -> None:
    assert rendered(count_summary(report(lost=3, undercounted=1, overcounted=1, foreign=1))) == (
        "1,000 inputs of 12 keys, 1,004 outputs, exactly-once\n"
        "    lost         3  inputs without an output\n"
        "                    partition 1 offset 0 key [red]k[/]: 0 outputs\n"
        "                    partition 1 offset 1 key [red]k[/]: 0 outputs\n"
        "                    and 1 more\n"
        "   under         1  keys counted too low\n"
        "                    partition 2 key k1: no count, 3 inputs\n"
        " doubled         0  outputs too many\n"
        "    over         1  keys counted too high\n"
        "                    partition 4 key k2: count 4, 3 inputs\n"
        " foreign         1  outputs that answer no input\n"
        "                    partition 0 offset 9\n"
        "LOST: not every input was counted"
    )


@pytest.mark.parametrize(
    ("found", "judgement"),
    [
        ({}, "kept: nothing lost, nothing doubled"),
        ({"exactly_once": 0, "doubled": 4}, "kept: nothing lost (repeats are allowed under at-least-once)"),
        ({"doubled": 4}, "DOUBLED: not every input was counted once only"),
        ({"foreign": 4, "doubled": 4}, "FOREIGN: outputs answer inputs that do not exist"),
        ({"lost": 1, "foreign": 4}, "LOST: not every input was counted"),
    ],
)
def test_the_last_line_is_the_judgement(found: dict[str, int], judgement: str) -> None:
    assert rendered(count_summary(report(**found))).splitlines()[-1] == judgement
