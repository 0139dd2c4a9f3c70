"""The rules of CONTRIBUTING.md on writing that a program can check: banned words, and sentences that are too long.

Generated pages are among the pages, so that descriptions of the resource and texts of reasons are read, too.
"""

import re
from collections.abc import Iterator, Mapping

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
"""Pattern, and what to write instead. Code in backticks may have them: names of fields and files stay."""

BANNED_LEFT: dict[str, int] = {
    "docs/values.md": 5,
}
"""Banned words in pages that are made from texts elsewhere. Lower a number when texts get better; never raise one."""

LONGEST = 25
"""Words of a sentence."""

LONG_SENTENCES: dict[str, int] = {
    "docs/command-line.md": 9,
    "docs/values.md": 1,
}
"""Longer sentences that are left, page by page. Lower a number when the page gets better; never raise one."""

PAGES = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for path in (
        *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
        *(REPOSITORY / "docs").rglob("*.md"),
    )
)


def prose(page: str) -> str:
    """The text of a page without code; of the change log, what is not released."""
    text = (REPOSITORY / page).read_text()
    return without_code(text.split("\n## Unreleased\n")[1].split("\n## ")[0] if page == "CHANGELOG.md" else text)


def without_code(text: str) -> str:
    """The text without blocks of code and comments, whose lines stay, addresses of links, and code in backticks."""
    text = re.sub(
        r"^ *```.*?^ *```|<!--.*?-->", lambda it: "\n" * it[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL
    )
    return re.sub(r"``.+?``|`[^`]+`", "`code`", re.sub(r"\]\([^)]*\)", "]", text))


def sentences(text: str) -> Iterator[str]:
    """One at a time: a line ends a sentence, and so does a cell of a table."""
    for line in text.splitlines():
        for cell in line.split(" | "):
            yield from re.split(r"(?<=[.!?:])\s+", cell)


def words(sentence: str) -> int:
    return len(re.findall(r"[\w`][\w`'’./%-]*", sentence))


def banned(text: str) -> list[str]:
    """Each banned word with its line's number and what to write instead."""
    return [
        f"{number}: {match[0]!r}, write: {instead}"
        for pattern, instead in BANNED.items()
        for number, line in enumerate(text.splitlines(), start=1)
        for match in re.finditer(rf"\b(?:{pattern})\b", line, flags=re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_banned_word(page: str) -> None:
    found = banned(prose(page))
    assert len(found) <= BANNED_LEFT.get(page, 0), "\n".join(found)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_gets_no_more_long_sentences(page: str) -> None:
    long = [f"{words(it)} words: {it}" for it in sentences(prose(page)) if words(it) > LONGEST]
    assert len(long) <= LONG_SENTENCES.get(page, 0), "\n".join(long)


@pytest.mark.parametrize("caps", [BANNED_LEFT, LONG_SENTENCES], ids=["banned", "long"])
def test_a_cap_is_that_of_a_page(caps: Mapping[str, int]) -> None:
    assert set(caps) - set(PAGES) == set()


def test_code_and_addresses_are_not_prose_and_lines_keep_their_numbers() -> None:
    text = "See [the page](nobody.md) and `nobody`.\n```\nnobody\n```\nNobody heard it.\n"
    assert banned(without_code(text)) == [
        "5: 'Nobody', write: the actor: the operator, the user, the broker",
        "5: 'heard', write: receive",
    ]


def test_a_sentence_ends_with_its_line_its_cell_and_its_mark() -> None:
    assert [words(it) for it in sentences("One two. Three: `code` four\n| five six | seven |\n")] == [2, 1, 2, 2, 1]
