"""The replicas that the user asks for: `32`, `--to 80%`, `--by -20%`, `--by +2`. Pure, and exact: no floating point.

A percentage is one of the desired replicas (`spec.replicas`), and the result is rounded up to a whole pod. So a
scale-down never removes more pods than the user asked for. Only 0 % leads to zero, and `--by -20%` is `--to 80%`.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

_NUMBER = re.compile(r"[0-9]{1,7}")
_PERCENTAGE = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,3})?) ?%")
_WHOLE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Pods:
    """A fixed number, whatever the desired replicas were."""

    number: int

    is_relative = False

    def of(self, desired: int) -> int:  # noqa: ARG002 (a fixed number)
        """The new desired replicas."""
        return self.number


@dataclass(frozen=True, slots=True)
class More:
    """A number of pods more than the desired replicas, or fewer."""

    pods: int

    is_relative = True

    def of(self, desired: int) -> int:
        """The new desired replicas; negative if the user removes more than there are."""
        return desired + self.pods


@dataclass(frozen=True, slots=True)
class Share:
    """A share of the desired replicas, rounded up."""

    share: Fraction

    is_relative = True

    def exactly(self, desired: int) -> Fraction:
        """The result before rounding."""
        return desired * self.share

    def of(self, desired: int) -> int:
        """The new desired replicas."""
        return ceil(self.exactly(desired))


Amount = Pods | More | Share


def absolute(text: str) -> Pods:
    """Read `32`; ValueError says what is wrong."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a number of replicas such as 3")
    return Pods(int(text))


def to(text: str) -> Amount:
    """Read `80%` or `32`; ValueError says what is wrong."""
    if _NUMBER.fullmatch(text):
        return absolute(text)
    match = _PERCENTAGE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is neither a percentage such as 80% nor a number of replicas")
    return Share(Fraction(match[1]) / 100)


def by(text: str) -> Amount:
    """Read `-20%`, `+50%`, `-2` or `+2`; ValueError says what is wrong."""
    sign, rest = text[:1], text[1:]
    if sign not in {"+", "-"}:
        raise ValueError(f"{text!r} has no sign: give how many more (+2, +50%) or fewer (-2, -20%)")
    way = 1 if sign == "+" else -1
    if _NUMBER.fullmatch(rest):
        return More(way * int(rest))
    match = _PERCENTAGE.fullmatch(rest)
    if match is None:
        raise ValueError(f"{text!r} is neither a percentage such as -20% nor a number such as -2")
    share = _WHOLE + way * Fraction(match[1]) / 100
    if share < 0:
        raise ValueError(f"{text!r} is more than all of the replicas")
    return Share(share)
