"""Reads and cuts CHANGELOG.md: sections of releases, and what breaks.

Called by the command line, by the check of definitions and by the chart's annotations. Pure.
"""

import re
from dataclasses import dataclass
from datetime import date

from lab.errors import LabError

UNRELEASED = "Unreleased"
NEXT = f"## {UNRELEASED}\n\nNothing yet.\n\n"
"""What stands above a section that was cut."""
_SECTION = re.compile(r"^## ([^\n]+)$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BREAKING = re.compile(r"^### Breaking\b(.*?)(?=^### |\Z)", re.MULTILINE | re.DOTALL)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z")


@dataclass(frozen=True)
class Section:
    """What the changelog says of one version."""

    version: str
    """`Unreleased` for what no release has."""
    day: str
    """Its date as YYYY-MM-DD, empty for what is unreleased."""
    text: str
    """Markdown without the heading."""


def sections(changelog: str) -> tuple[Section, ...]:
    """All sections from the top; LabError for a heading that is neither `Unreleased` nor `VERSION - DATE`."""
    return tuple(_section(found) for found in _SECTION.finditer(changelog))


def _section(found: re.Match[str]) -> Section:
    version, _, day = found[1].strip().partition(" - ")
    if bool(_DATE.match(day)) == (version == UNRELEASED):
        raise LabError(
            f"CHANGELOG.md: the heading `{found[0].splitlines()[0]}` is of no known form",
            "it is neither `## Unreleased` nor `## VERSION - YYYY-MM-DD`",
            "write it in one of these forms",
        )
    return Section(version, day, found[2].strip())


def section(changelog: str, version: str) -> Section | None:
    """The section of a version; None if there is none."""
    return next((it for it in sections(changelog) if it.version == version), None)


def breaking(changelog: str, version: str) -> frozenset[str]:
    """The names in backticks that stand in Breaking sections of what the last release does not have.

    `version` is that of the source tree, which no release had before: its section is there in the very commit of its
    release.
    """
    new = [it.text for it in sections(changelog) if it.version in {UNRELEASED, version}]
    parts = [part for text in new for part in _BREAKING.findall(text)]
    return frozenset(name for part in parts for name in re.findall(r"`([^`\n]+)`", part))


def cut(changelog: str, version: str, day: date) -> str:
    """Give what is unreleased the heading of a version, below a new empty section.

    Raises LabError if there is nothing to release, or the version has a section already.
    """
    found = {it.version: it for it in sections(changelog)}
    what = f"CHANGELOG.md: {version} cannot be cut"
    if version in found:
        raise LabError(what, f"it has a section of {found[version].day}", "begin the next version first")
    if UNRELEASED not in found or found[UNRELEASED].text in {"", NEXT.splitlines()[2]}:
        raise LabError(what, "nothing is unreleased", "write what changed for users")
    text = changelog.replace(f"{NEXT.splitlines()[2]}\n\n", "", 1)
    return text.replace(f"## {UNRELEASED}\n", f"{NEXT}## {version} - {day.isoformat()}\n", 1)
