"""Every write of a group's setting, dated; from this list alone follows what may be set in the end.

An operator takes for its own what it wrote itself, whoever writes the same value again. So its old value may come back
then, and so may a value that was replaced before an operator could see it. The same holds for what it put on record to
write when it could not see that another hand had just set it. Asked by `judge`; it reads nothing itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import reduce

Values = frozenset[int | None]
UNSEEN = 10.0
"""Seconds in which another hand's value can be replaced by the next one before the operator reads it."""


@dataclass(frozen=True, slots=True)
class Raised:
    """What the hold record says of the setting."""

    before: int | None
    to: int


@dataclass(frozen=True, slots=True)
class Write:
    """One write, and what was on record when it was made."""

    at: float
    """Seconds of the world's clock."""
    value: int | None
    """Standbys; None removes the group's own value."""
    record: Raised | None
    is_by_operator: bool = False
    is_late: bool = False
    """Of an operator's write: another hand wrote after its last chance to see that."""
    is_planned: bool = False
    """An operator has put on record that it will write this."""


class Meaning(Enum):
    """What an operator's write was."""

    RAISE = auto()
    PUT_BACK = auto()
    HANDS_OWN = auto()
    """A raise to what another hand has just set: nothing tells the two from each other."""
    LATE_RAISE = auto()
    """A raise whose record has an old value that was overtaken."""
    WRONG = auto()


@dataclass(frozen=True, slots=True)
class Allowed:
    """What follows from the writes so far."""

    accepted: Values
    """What may be set in the end; several values where another hand wrote what the operator takes for its own."""
    replaced: Values = frozenset()
    """The same before another hand wrote last, with what that replaced unseen."""
    by_operator: Values = frozenset()
    """What the operator wrote since the setting was last as its users have it."""
    by_hand_at: float = float("-inf")

    def meaning(self, write: Write) -> Meaning:
        """What the next write of an operator is."""
        record = write.record
        if write.value in self.accepted:
            is_hands_own = record is not None and record.to == write.value and write.is_late
            return Meaning.HANDS_OWN if is_hands_own else Meaning.PUT_BACK
        if record is not None and record.before in self.accepted:
            return Meaning.RAISE
        return Meaning.LATE_RAISE if write.is_late else Meaning.WRONG

    def after(self, write: Write) -> "Allowed":
        """What follows with one more write."""
        if write.is_planned:
            return self._after_plan(write)
        return self._after_operator(write) if write.is_by_operator else self._after_hand(write)

    def _after_plan(self, write: Write) -> "Allowed":
        """The next look shows the planned value, and the record does not say whether it was sent."""
        record = write.record
        is_hands_own = write.is_late and write.value in self.accepted
        if record is None or not is_hands_own or record.before not in self.replaced:
            return self
        return replace(self, accepted=self.accepted | {record.before})

    def _after_hand(self, write: Write) -> "Allowed":
        unseen = self.replaced if write.at - self.by_hand_at < UNSEEN else frozenset[int | None]()
        replaced = self.accepted | unseen
        # What the operator wrote itself, or is about to write, it takes for its own.
        is_ambiguous = write.value in self.by_operator or (write.record is not None and write.value == write.record.to)
        accepted = frozenset({write.value}) | (replaced if is_ambiguous else frozenset())
        return replace(self, accepted=accepted, replaced=replaced, by_hand_at=write.at)

    def _after_operator(self, write: Write) -> "Allowed":
        meaning = self.meaning(write)
        if meaning is Meaning.PUT_BACK:
            return replace(self, by_operator=frozenset())
        comes_back = self.accepted
        if meaning in {Meaning.HANDS_OWN, Meaning.LATE_RAISE}:
            comes_back |= {write.value if write.record is None else write.record.before}
        return replace(self, accepted=comes_back, by_operator=self.by_operator | {write.value})


def allowed_after(first: int | None, writes: Iterable[Write]) -> Allowed:
    """What may be set after these writes, in their order.

    Args:
        first: What the users had set before the first of them.
        writes: Of operators and of other hands.
    """
    return reduce(Allowed.after, writes, Allowed(accepted=frozenset({first})))
