"""What the matrix promises to try."""

from collections import defaultdict
from dataclasses import replace

from lab.matrix.cells import CELLS, JAVA_TOOL_OPTIONS, JDK_JAVA_OPTIONS, NEWER, Cell, Launcher
from streamapp.core.facts.agent_reports import AsideKind

AT_WORK = [cell for cell in CELLS if cell.aside is None]


def line(version: str) -> str:
    return ".".join(version.split(".")[:2])


def test_every_line_of_kafka_streams_from_3_8_on_is_tried_on_plain_main() -> None:
    tried = {line(cell.streams) for cell in AT_WORK if cell.launcher is Launcher.PLAIN}
    assert tried == {"3.8", "3.9", "4.0", "4.1", "4.2", "4.3"}


def test_every_launcher_is_tried_on_two_lines_and_word_count_on_three() -> None:
    lines = defaultdict(set)
    for cell in AT_WORK:
        lines[cell.launcher].add(line(cell.streams))
    assert {launcher: len(lines[launcher]) >= 2 for launcher in Launcher} == dict.fromkeys(Launcher, True)
    assert lines[Launcher.WORD_COUNT] == {"3.8", "4.0", "4.2"}


def test_a_newer_java_and_both_variables_are_tried() -> None:
    assert NEWER in {cell.java for cell in AT_WORK}
    assert {cell.variable for cell in AT_WORK} == {JDK_JAVA_OPTIONS, JAVA_TOOL_OPTIONS}


def test_each_reason_to_step_aside_that_an_application_can_give_is_tried() -> None:
    kinds = {cell.aside for cell in CELLS} - {None}
    assert kinds == {AsideKind.OLDER_STREAMS, AsideKind.OWN_ASSIGNOR, AsideKind.STREAMS_PROTOCOL}


def test_names_tell_cells_apart() -> None:
    names = [cell.name for cell in CELLS]
    assert len(set(names)) == len(names)
    cell = Cell(Launcher.QUARKUS, "3.9.2", "3.20.3")
    assert cell.name == "Quarkus fast-jar 3.20.3, Streams 3.9.2, Java 17"
    assert replace(cell, aside=AsideKind.FAILED).name.endswith(", Java 17, Failed")
