"""Base images take their packages from the machine's own mirrors and from nowhere else."""

from pathlib import Path

import pytest

from lab.build.bases import apt_sources, java_release
from lab.errors import LabError


def write(apt: Path, name: str, text: str) -> Path:
    path = apt / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_distributions_mirrors_are_taken_without_media_comments_and_other_repositories(tmp_path: Path) -> None:
    media = "deb cdrom:[Debian GNU/Linux 12]/ bookworm main\n"
    mirror = "deb http://mirror.test/debian bookworm main\n"
    main = write(tmp_path, "sources.list", f"# written by the installer\n{media}{mirror}")
    ours = write(tmp_path, "sources.list.d/debian.sources", "Types: deb\nURIs: http://mirror.test/debian\n")
    write(tmp_path, "sources.list.d/other.list", "deb https://other.test bookworm main\n")
    assert apt_sources(tmp_path) == {main: mirror, ours: "Types: deb\nURIs: http://mirror.test/debian\n"}


def test_a_machine_without_such_mirrors_is_told_which_files_were_read(tmp_path: Path) -> None:
    write(tmp_path, "sources.list", "# Ubuntu sources have moved\n")
    with pytest.raises(LabError) as raised:
        apt_sources(tmp_path)
    files = ("sources.list", "sources.list.d/debian.sources", "sources.list.d/ubuntu.sources")
    assert raised.value.why == f"none of {', '.join(str(tmp_path / name) for name in files)} names one"


def test_a_jdk_is_described_by_what_it_carries_else_by_its_place(tmp_path: Path) -> None:
    by_place = java_release(tmp_path)
    write(tmp_path, "release", 'JAVA_VERSION="17.0.15"\n')
    assert (by_place, java_release(tmp_path)) == (str(tmp_path), 'JAVA_VERSION="17.0.15"\n')
