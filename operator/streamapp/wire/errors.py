"""What a decoder raises on bytes that it cannot account for to the last one."""

from dataclasses import dataclass


@dataclass
class UndecodableError(Exception):
    """Bytes of a group member or of a log that do not have the layout they claim.

    Every decoder of this package raises this and nothing else, so that a caller turns what is foreign or damaged into
    one reason (hold) instead of a traceback.
    """

    what: str
    """The structure being read, for example `SubscriptionInfo`."""
    where: str
    """The field and its offset in that structure, for example `taskOffsetSums[3].offsetSum at byte 41`."""
    version: int | None
    """The version the bytes state, None where it was not read yet."""
    why: str
    """What is wrong with it."""

    def __str__(self) -> str:
        version = "unknown version" if self.version is None else f"version {self.version}"
        return f"{self.what} ({version}): {self.where}: {self.why}"
