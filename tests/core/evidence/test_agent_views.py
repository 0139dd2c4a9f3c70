"""What is remembered of the agents' words: two looks of each, however often one of them is answered."""

from dataclasses import replace
from datetime import timedelta

import pytest

from streamapp.core.evidence.agent_views import remember, silence, taken_back, views
from streamapp.core.facts.agent_reports import AgentReport, AgentsSeen, EndsAfter
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable
from streamapp.core.facts.policy import ScalingPolicy
from tests.builders import NOW, a_snapshot, seconds
from tests.support import example

TIMING = ScalingPolicy(agent=True).timing
MEMBERS = example.members(3)


def heard(seen: AgentsSeen | None, *, sequence: int, ago: float, at: float) -> AgentsSeen:
    """One more round of questions: `at` seconds ago, answered by looks of `ago` seconds ago."""
    words = [example.report(one, seconds(ago), sequence=sequence) for one in MEMBERS]
    return remember(seen, NOW - timedelta(seconds=at), words)


def sequences(seen: AgentsSeen) -> list[int]:
    return [word.sequence for word in seen.words[Ordinal(0)] if isinstance(word, AgentReport)]


def test_a_look_that_is_answered_twice_does_not_take_the_place_of_the_one_before() -> None:
    """At rest an application is asked once a minute, and two passes in one second get one look."""
    rested = heard(None, sequence=1, ago=61, at=60)
    once = heard(rested, sequence=2, ago=2, at=2)
    twice = heard(once, sequence=2, ago=2, at=1)
    assert (sequences(once), sequences(twice)) == ([2, 1], [2, 1])
    assert silence(a_snapshot(agents=twice), TIMING) is None


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(("heard_ago", "ends_ago"), [(4.5, 4.0), (2.0, 1.0)], ids=["at once", "after two seconds"])
def test_ends_count_that_were_read_after_the_answers_were_in(heard_ago: float, ends_ago: float) -> None:
    """Asked 4.5 s ago, of a look that was 2 s old as the answer was made: a slow answer can be of 4 s ago."""
    rounds = [EndsAfter(NOW - seconds(ago), example.ends(NOW - seconds(ago))) for ago in (4.0, 1.0)]
    words = [replace(example.report(one, seconds(6.5)), heard_at=NOW - seconds(heard_ago)) for one in MEMBERS]
    earlier = [replace(example.report(one, seconds(9), sequence=0), heard_at=NOW - seconds(9)) for one in MEMBERS]
    seen = remember(remember(None, NOW - seconds(4.2), earlier, rounds[0]), NOW, words, rounds[1])
    newest, *_ = views(a_snapshot(agents=seen), TIMING)
    assert isinstance(newest.ends, EndOffsets)
    assert newest.ends.read_at == NOW - seconds(ends_ago)


def test_a_look_was_over_when_its_first_answer_was_in() -> None:
    first = [replace(example.report(one, seconds(5)), heard_at=NOW - seconds(4)) for one in MEMBERS]
    again = [replace(one, heard_at=NOW - seconds(1)) for one in first]
    words = remember(remember(None, NOW - seconds(4), first), NOW, again).words[Ordinal(0)]
    assert [word.known_by for word in words if isinstance(word, AgentReport)] == [NOW - seconds(4)]


def with_positions(report: AgentReport, **positions: int) -> AgentReport:
    """The same with these positions of every standby."""
    tasks = tuple(task if task.is_active else replace(task, positions=positions) for task in report.tasks or ())
    return replace(report, tasks=tasks)


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(
    ("now", "why"),
    [
        pytest.param({"counts": 1_000_001}, "", id="it went on"),
        pytest.param({"counts": 1_000_000, "totals": 3}, "", id="it has another store"),
        pytest.param({"counts": 0}, "counts was at 1000000 and is at 0", id="it began anew"),
        pytest.param({}, "counts was at 1000000 and is at None", id="it is not told any more"),
    ],
)
def test_a_lower_position_takes_back_what_was_said(now: dict[str, int], why: str) -> None:
    report = example.report(MEMBERS[0], seconds(5))
    before = with_positions(report, counts=1_000_000)
    assert taken_back(before, with_positions(report, **now)).endswith(why)
    assert bool(taken_back(before, with_positions(report, **now))) == bool(why)


@pytest.mark.guarantee(1)
def test_a_word_that_a_newer_one_takes_back_does_not_count_by_the_ends_of_its_time() -> None:
    """The same trouble of a broker lets a copy begin anew, and the ends behind the newest words unread."""
    no_answer = EndsAfter(NOW - seconds(0.5), EndsUnreadable("no answer within 5 s"))
    rounds = (no_answer, EndsAfter(NOW - seconds(4.5), example.ends(NOW - seconds(4))))
    said = {one: [example.report(MEMBERS[one], seconds(ago)) for ago in (1, 5, 9)] for one in range(3)}
    as_before = AgentsSeen({Ordinal(one): tuple(words) for one, words in said.items()}, rounds)
    wiped = {**said, 0: [with_positions(said[0][0], counts=0), *said[0][1:]]}
    seen = AgentsSeen({Ordinal(one): tuple(words) for one, words in wiped.items()}, rounds)
    assert isinstance(views(a_snapshot(agents=as_before), TIMING)[0].ends, EndOffsets)
    assert isinstance(views(a_snapshot(agents=seen), TIMING)[0].ends, EndsUnreadable)
