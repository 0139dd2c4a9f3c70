"""The link to a time of one application in a report: `#NAMESPACE/NAME?since=TIME&until=TIME`. Pure.

The page, `streamapp-analytics report` and `kubectl streamapp report` all have it.
"""

from datetime import UTC, datetime, time, timedelta
from typing import Final
from urllib.parse import quote, urlencode

AROUND: Final = timedelta(minutes=5)
"""Before and after an incident, that the link to it shows."""


def marker(title: str) -> str:
    """What the page has of an application with a part of its own; `title` is namespace and name."""
    return f'data-name="{title}"'


def fragment(title: str, since: datetime | None = None, until: datetime | None = None) -> str:
    """What follows the address of the page; `title` is namespace and name."""
    given = {"since": since, "until": until}
    query = urlencode({name: text(at) for name, at in given.items() if at is not None}, safe=":")
    return f"#{quote(title)}?{query}" if query else f"#{quote(title)}"


def text(at: datetime) -> str:
    """A time as a link has it, in UTC and whole seconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(words: str, last: datetime) -> datetime:
    """The time that a user names: a date with a time, or a time of day, which is the newest such before `last`.

    Raises:
        ValueError: it is neither.
    """
    try:
        of_day = time.fromisoformat(words)
    except ValueError:
        at = datetime.fromisoformat(words)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    there = last.astimezone(UTC).replace(hour=of_day.hour, minute=of_day.minute, second=of_day.second, microsecond=0)
    return there if there <= last else there - timedelta(days=1)
