"""How much of what agents said is kept: enough for two views of all of them, one some seconds later than the other."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from streamapp.core.agents import AgentReport, AgentsSeen, AgentWord, EndsAfter

KEPT_FOR = timedelta(seconds=15)
LEAST = 2


def remember(
    seen: AgentsSeen | None, now: datetime, words: Iterable[AgentWord], ends: EndsAfter | None = None
) -> AgentsSeen:
    """What was heard after one more round of questions.

    Args:
        seen: What was heard before.
        now: The time.
        words: One of each pod that was asked; whoever is not among them is forgotten.
        ends: What was read after the answers were in, if anything was.
    """
    before = AgentsSeen() if seen is None else seen
    kept = {word.ordinal: _kept((word, *before.words.get(word.ordinal, ())), now) for word in words}
    known = before.ends if ends is None else (ends, *before.ends)
    young = tuple(one for number, one in enumerate(known) if number < LEAST or now - one.began_at <= KEPT_FOR)
    return AgentsSeen(kept, young)


def _kept(words: tuple[AgentWord, ...], now: datetime) -> tuple[AgentWord, ...]:
    """Silence is remembered once, reports for a while."""
    once = [word for number, word in enumerate(words) if number == 0 or isinstance(word, AgentReport)]
    return tuple(
        word
        for number, word in enumerate(once)
        if number < LEAST or (isinstance(word, AgentReport) and now - word.as_of <= KEPT_FOR)
    )
