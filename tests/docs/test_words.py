"""The rules of CONTRIBUTING.md on writing that a program can check: banned words, and sentences that are too long.

Generated pages are among the pages, so that descriptions of the resource and texts of reasons are read, too.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from lab.settings import REPOSITORY

BANNED = {
    r"(?:no|some|any)(?:body|[ -]one)|someone|anyone|whoever": "the actor: the operator, the user, the broker",
    r"wish(?:es|ed)?": "desired replicas",
    r"granted": "current replicas; of rights: given, has",
    r"nudg(?:es?|ed|ing)": "rebalance trigger, triggered rebalance",
    r"phantoms?": "probe member",
    r"tells?|told": "report, say",
    r"hears?|heard": "receive",
    r"mend(?:s|ed)?": "fix",
    r"puts? out": "evict",
    r"go(?:es)? by": "use",
    r"(?:is|are) to be|(?:has|have) to have": "must",
    r"take the wheel|break the glass": "scale manually; switch the guard off",
}
"""Pattern, and what to write instead."""

ALLOWED = {
    "docs/command-line.md": {"wish": "the sample of a change in the flight record has this field"},
    "docs/flight-record.md": {"wish": "a field of the record", "nudge": "a kind of line", "granted": "a field"},
}
"""Words that a page needs in their plain meaning, and why. Code in backticks needs no entry."""

GENERATED = ("reasons", "diagnoses", "metrics", "resource", "state-table", "values", "command-line")
"""Pages that are made from texts elsewhere; `BANNED_LEFT` counts what those texts still have."""

BANNED_LEFT: dict[str, int] = {}
"""Banned words that are left, page by page. Lower a number when texts get better; never raise one."""

LONGEST = 25
"""Words of a sentence."""

LONG_SENTENCES: dict[str, int] = {}
"""Longer sentences that are left, page by page. Lower a number when the page gets better; never raise one."""

PAGES = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for path in (
        *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
        *(REPOSITORY / "docs").rglob("*.md"),
    )
)


def prose(page: str) -> str:
    """The text without code, addresses of links and comments; of the change log what is not released."""
    text = (REPOSITORY / page).read_text()
    if page == "CHANGELOG.md":
        text = text.split("\n## Unreleased\n")[1].split("\n## ")[0]
    text = re.sub(r"^ *```.*?^ *```|<!--.*?-->", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"``.+?``|`[^`]+`", "`code`", re.sub(r"\]\([^)]*\)", "]", text))


def sentences(text: str) -> Iterator[str]:
    """One at a time: a line ends a sentence, and so does a cell of a table."""
    for line in text.splitlines():
        for cell in line.split(" | "):
            yield from re.split(r"(?<=[.!?:])\s+", cell)


def words(sentence: str) -> int:
    return len(re.findall(r"[\w`][\w`'’./%-]*", sentence))


def banned(text: str, allowed: Mapping[str, str]) -> list[str]:
    """Each banned word with its line's number and what to write instead."""
    return [
        f"{number}: {match[0]!r}, write: {instead}"
        for pattern, instead in BANNED.items()
        for number, line in enumerate(text.splitlines(), start=1)
        for match in re.finditer(rf"\b(?:{pattern})\b", line, flags=re.IGNORECASE)
        if match[0].lower() not in allowed
    ]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_banned_word(page: str) -> None:
    found = banned(prose(page), ALLOWED.get(page, {}))
    assert len(found) <= BANNED_LEFT.get(page, 0), "\n".join(found)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_gets_no_more_long_sentences(page: str) -> None:
    long = [f"{words(it)} words: {it}" for it in sentences(prose(page)) if words(it) > LONGEST]
    assert len(long) <= LONG_SENTENCES.get(page, 0), "\n".join(long)


@pytest.mark.parametrize("caps", [BANNED_LEFT, LONG_SENTENCES], ids=["banned", "long"])
def test_a_cap_is_that_of_a_page(caps: Mapping[str, int]) -> None:
    assert set(caps) - set(PAGES) == set()


def test_what_is_checked_is_what_a_reader_reads() -> None:
    text = "Nobody heard it.\n```\nnobody\n```\nSee [who](nobody.md) and `nobody`.\n"
    assert banned(re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL), {})[0].startswith("1: 'Nobody'")
