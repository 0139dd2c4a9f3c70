"""What a sweep says of what it came past, and of what it did not."""

from tests.prove.coverage import Coverage, every_cell
from tests.prove.play import play
from tests.prove.story import Story
from tests.prove.sweep import Report


def test_a_removal_puts_its_guarantees_at_stake_and_names_the_reasons_and_cells_on_the_way() -> None:
    visited = play(Story("down-4-3", 1)).visited
    assert {one for one in visited if one.startswith("guarantee")} == {f"guarantee {n}" for n in (1, 4, 6, 7, 8)}
    assert {"reason Covered", "reason ReadingsPending", "cell lower | open | covered | stable"} <= visited
    assert {one for one in visited if one.startswith("cell")} <= set(every_cell())


def test_the_end_of_a_sweep_names_what_no_story_visited() -> None:
    report = Report()
    report.add(play(Story("kill", 1)))
    coverage = Coverage(report.visited)
    assert coverage.never(["reason Steady", "reason InvalidSpec"]) == ["reason InvalidSpec"]
    told = "\n".join(coverage.lines())
    assert "InvalidSpec" in told
    assert "  7: 1 (a member was evicted)" in told
    assert "  8: 0 (a removal was written)" in told
