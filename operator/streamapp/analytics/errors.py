"""What can go wrong, for the person who started a run: the object, the cause and the next step."""

from dataclasses import dataclass


@dataclass
class AnalyticsError(Exception):
    """A run that could not do what it was asked for; nothing of it is in any table."""

    what: str
    """The object."""
    why: str
    """The cause."""
    next_step: str
    """What a person can do."""

    def __str__(self) -> str:
        return f"{self.what}: {self.why} ({self.next_step})"
