"""The number of the product, in every file that names it, and the sections of the changelog."""

import re
import shutil
import subprocess
from datetime import date
from pathlib import Path

import pytest

from lab.build import earlier_release
from lab.errors import LabError
from lab.settings import REPOSITORY
from release import changelog
from release.numbering import EARLIER, PLACES, begin, version_of

NOT_THE_PRODUCT = re.compile(
    r"CHANGELOG\.md|.*\.schema\.json|operator/streamapp/analytics/synthetic/.*|lab/.*/go\.(mod|sum)|(examples|release|tests)/.*"
)
"""Files where the same digits are a number of something else, or examples of a release."""
HASH = "c" * 40


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for place in (*PLACES, str(EARLIER)):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / place, tmp_path / place)
    return tmp_path


def test_every_file_that_names_the_version_is_written() -> None:
    command = ["git", "-C", str(REPOSITORY), "grep", "--name-only", "--fixed-strings", version_of(REPOSITORY)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert sorted(name for name in found if not NOT_THE_PRODUCT.match(name)) == sorted(PLACES)


def test_the_next_version_is_written_everywhere_and_nothing_else_is(tree: Path) -> None:
    old = version_of(tree)
    before = {place: (tree / place).read_text() for place in PLACES}
    assert begin(tree, "7.8.9", HASH) == (*map(Path, PLACES), EARLIER)
    after = {place: (tree / place).read_text() for place in PLACES}
    assert version_of(tree) == "7.8.9"
    assert {place: text.replace("7.8.9", old) for place, text in after.items()} == before
    assert after["uv.lock"].count("7.8.9") == 1 + before["uv.lock"].count("7.8.9")
    assert f'COMMIT = "{HASH}"' in (tree / EARLIER).read_text()
    assert earlier_release.COMMIT not in (tree / EARLIER).read_text()


@pytest.mark.parametrize("version", ["0.0.9", "0.1.0", "next", "1.0.0-rc.1"])
def test_a_version_that_is_not_later_is_refused(tree: Path, version: str) -> None:
    with pytest.raises(LabError, match="not a later MAJOR"):
        begin(tree, version, HASH)


def test_a_place_without_the_number_is_named_and_nothing_is_written(tree: Path) -> None:
    (tree / PLACES[-1]).write_text("nothing")
    with pytest.raises(LabError, match=re.escape(PLACES[-1])):
        begin(tree, "7.8.9", HASH)
    assert version_of(tree) == version_of(REPOSITORY)


TEXT = """# Changelog

## Unreleased

### Breaking: fewer values
- `spec.size` is smaller.
### Added
- `spec.mode`

## 0.2.0 - 2026-01-02

### Breaking
- `spec.new`

## 0.1.0 - 2026-01-01

### Breaking
- `spec.id`
"""


def test_what_breaks_is_what_the_last_release_does_not_have() -> None:
    assert changelog.breaking(TEXT, "0.3.0") == {"spec.size"}
    assert changelog.breaking(TEXT, "0.2.0") == {"spec.size", "spec.new"}
    assert changelog.breaking("# Changelog\n", "0.2.0") == set()


def test_a_cut_moves_the_unreleased_text_below_a_version_and_leaves_an_empty_section() -> None:
    done = changelog.cut(TEXT, "0.3.0", date(2026, 3, 4))
    assert [(it.version, it.day) for it in changelog.sections(done)] == [
        ("Unreleased", ""),
        ("0.3.0", "2026-03-04"),
        ("0.2.0", "2026-01-02"),
        ("0.1.0", "2026-01-01"),
    ]
    assert changelog.breaking(done, "0.3.0") == {"spec.size"}
    assert done.replace("Nothing yet.\n\n## 0.3.0 - 2026-03-04\n\n", "") == TEXT
    again = done.replace("Nothing yet.\n", "Nothing yet.\n\n- One thing.\n")
    assert "Nothing yet." not in changelog.cut(again, "0.4.0", date(2026, 5, 6)).partition("## 0.4.0")[2]


@pytest.mark.parametrize(
    ("text", "version", "why"),
    [
        (TEXT, "0.2.0", "it has a section of 2026-01-02"),
        (changelog.cut(TEXT, "0.3.0", date(2026, 3, 4)), "0.4.0", "nothing is unreleased"),
        ("# Changelog\n", "0.3.0", "nothing is unreleased"),
        (TEXT.replace("0.2.0 - 2026-01-02", "0.2.0"), "0.3.0", "neither `## Unreleased` nor"),
    ],
)
def test_a_cut_that_would_lose_something_is_refused(text: str, version: str, why: str) -> None:
    with pytest.raises(LabError, match=why):
        changelog.cut(text, version, date(2026, 3, 4))


def test_the_changelog_has_what_is_unreleased_on_top_and_every_release_below_with_its_date() -> None:
    found = changelog.sections((REPOSITORY / "CHANGELOG.md").read_text())
    assert found[0].version == changelog.UNRELEASED
    versions = [tuple(map(int, it.version.split("."))) for it in found[1:]]
    assert versions == sorted(versions, reverse=True)
    assert versions[-1] == (0, 1, 0)
    assert tuple(map(int, version_of(REPOSITORY).split("."))) >= versions[0]
