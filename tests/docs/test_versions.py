"""The site of each version lies beside the others, names itself, and leads to the others without a server."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from docs import versions
from lab.settings import REPOSITORY


def a_site(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name / "docs").mkdir(parents=True)
        (folder / name / "README.html").write_text(name)
        (folder / name / "docs" / "a.html").write_text(name)
    (folder / "assets").mkdir()
    return folder


def listed(site: Path) -> list[dict[str, object]]:
    text = (site / "versions.js").read_text()
    found: list[dict[str, object]] = json.loads(text.removeprefix("window.streamappVersions = ").rstrip(";\n"))
    return found


def test_versions_are_listed_from_the_newest_on_with_their_pages(tmp_path: Path) -> None:
    site = a_site(tmp_path, "0.2.0", "main", "0.10.0", "0.10.0-rc.1", "0.9.1")
    versions.list_versions(site)
    assert [each["label"] for each in listed(site)] == [
        "main (not released)",
        "0.10.0 (newest)",
        "0.10.0-rc.1",
        "0.9.1",
        "0.2.0",
    ]
    assert listed(site)[1] == {"name": "0.10.0", "label": "0.10.0 (newest)", "pages": ["README", "docs/a"]}
    assert 'url=0.10.0/README.html"' in (site / "index.html").read_text()


def test_before_the_first_release_the_first_page_is_that_of_main(tmp_path: Path) -> None:
    versions.list_versions(a_site(tmp_path, "main"))
    assert 'url=main/README.html"' in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize("version", ["next", "../up", "1.0", "1.0.0/x"])
def test_a_folder_is_named_by_a_version_alone(tmp_path: Path, version: str) -> None:
    with pytest.raises(SystemExit, match="is no version"):
        versions.build(tmp_path, version, None)
    assert list(tmp_path.iterdir()) == []


def test_a_revision_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no-such-revision[\s\S]*name a tag or a commit"):
        versions.build(tmp_path, "0.1.0", "no-such-revision")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_pages_of_a_revision_have_its_version_and_lead_to_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone, site = tmp_path / "clone", tmp_path / "site"
    for name in ("docs/conf.py", "docs/site"):
        (shutil.copytree if (REPOSITORY / name).is_dir() else copied)(REPOSITORY / name, clone / name)
    (clone / "README.md").write_text("# The promise\n\n[How](docs/operations.md)\n")
    (clone / "docs" / "operations.md").write_text("# Operations\n")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    for command in (("init", "--quiet"), ("add", "--all"), (*identity, "commit", "--quiet", "--message=first")):
        subprocess.run(["git", "-C", clone, *command], check=True)
    (clone / "docs" / "operations.md").write_text("# Not committed\n")
    monkeypatch.setattr(versions, "ROOT", clone)
    versions.build(site, "0.1.0", "HEAD")
    versions.build(site, "main", None)
    page = (site / "0.1.0" / "docs" / "operations.html").read_text()
    assert re.findall("<title>(.*)</title>", page)[:1] == ["Operations - streamapp-operator 0.1.0"]
    assert 'data-version="0.1.0" data-page="docs/operations" data-root="../"' in page
    scripts = re.findall(r'<script src="([^"?]*version[^"?]*)', page)
    assert [(site / "0.1.0" / "docs" / script).resolve().is_file() for script in scripts] == [True, True]
    assert [each["name"] for each in listed(site)] == ["main", "0.1.0"]
    assert "Not committed" in (site / "main" / "docs" / "operations.html").read_text()


def copied(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)
