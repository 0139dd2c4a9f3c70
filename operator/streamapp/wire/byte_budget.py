"""How many bytes of peers' unfinished answers the process holds: for all applications together, and who holds most.

Used by `kafka` and `agents` while they read answers. Pure accounting: it reads nothing and waits for nothing. A peer
that announces much and sends little holds only what it has sent.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

DEFAULT_TOTAL = 64 * 1024 * 1024
"""Bytes of all unfinished answers: a sixth of the memory that the chart gives to the operator."""


class BudgetExceededError(Exception):
    """This answer had to go: its owner holds more than any other, and the process cannot hold more."""


@dataclass(slots=True)
class ByteBudget:
    """Bytes of answers that are being read or decoded, for the whole process."""

    total: int = DEFAULT_TOTAL
    _shares: set["Share"] = field(default_factory=set)

    @property
    def used(self) -> int:
        """Bytes that are held now."""
        return sum(share.size for share in self._shares)

    def share(self, owner: Hashable, drop: Callable[[], None]) -> "Share":
        """Begin an answer.

        Args:
            owner: Whose answer it is: shares of one owner count together.
            drop: Ends the reading of this answer; called if another answer needs the room.
        """
        return Share(self, owner, drop)

    def make_room(self, asking: "Share") -> None:
        """Drop answers of the owner who holds most until the rest fits; raise if that is the asking answer's."""
        while self.used > self.total:
            largest = self._largest_owner()
            if largest == asking.owner:
                raise BudgetExceededError
            for share in [share for share in self._shares if share.owner == largest]:
                share.revoke()

    def _largest_owner(self) -> Hashable:
        sizes: defaultdict[Hashable, int] = defaultdict(int)
        for share in self._shares:
            sizes[share.owner] += share.size
        return max(sizes, key=lambda owner: sizes[owner])

    def hold(self, share: "Share") -> None:
        """Count a share."""
        self._shares.add(share)

    def release(self, share: "Share") -> None:
        """Count it no longer."""
        self._shares.discard(share)


@dataclass(slots=True, eq=False)
class Share:
    """One answer's part of the budget, from its first byte until it is decoded or given up."""

    budget: ByteBudget
    owner: Hashable
    drop: Callable[[], None]
    size: int = 0
    is_revoked: bool = False

    def __enter__(self) -> Self:
        """Hold nothing yet."""
        self.budget.hold(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Hold nothing any more."""
        self.budget.release(self)

    def add(self, size: int) -> None:
        """Count bytes that have arrived; BudgetExceededError if they cannot be kept."""
        if self.is_revoked:
            raise BudgetExceededError
        self.size += size
        self.budget.make_room(self)

    def revoke(self) -> None:
        """Give the room to another answer."""
        self.is_revoked = True
        self.budget.release(self)
        self.drop()
