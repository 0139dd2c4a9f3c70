#!/usr/bin/env python3
"""Builds the site of one version beside those of others, and writes the list by which pages lead to each other.

`make docs` calls it: `python -m docs.versions site --version 1.2.3`. A site is a folder of files; nothing serves it.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAIN = "main"
"""The name of what no release has."""
VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?\Z")
INDEX = """<!doctype html>
<meta charset="utf-8">
<title>streamapp-operator</title>
<meta http-equiv="refresh" content="0; url={first}/README.html">
<a href="{first}/README.html">streamapp-operator</a>
"""


def build(site: Path, version: str, revision: str | None) -> None:
    """Build the pages of the working tree, or of a revision, into the folder of a version; then list all versions.

    Raises SystemExit with what is wrong: a version that is neither a number nor `main`, no such revision, a page that
    does not build.
    """
    if version != MAIN and not VERSION.match(version):
        sys.exit(f"docs: {version!r} is no version\n  next:  name one such as 1.2.3, or leave VERSION out for {MAIN}")
    with tempfile.TemporaryDirectory() as place:
        source = ROOT if revision is None else _exported(revision, Path(place) / "source")
        made = Path(place) / "made"
        options = ("--quiet", "--fresh-env", "--nitpicky", "--fail-on-warning", "--keep-going", "--conf-dir", "docs")
        command = [sys.executable, "-m", "sphinx", *options, "-b", "html", ".", str(made)]
        ran = subprocess.run(command, cwd=source, env={**os.environ, "DOCS_VERSION": version}, check=False)
        if ran.returncode != 0:
            sys.exit(f"docs: {version} was not built, see above")
        shutil.rmtree(made / ".doctrees", ignore_errors=True)
        shutil.rmtree(site / version, ignore_errors=True)
        shutil.copytree(made, site / version)
    list_versions(site)


def _exported(revision: str, folder: Path) -> Path:
    """Write the files of a revision into a folder."""
    folder.mkdir()
    packed = subprocess.run(["git", "-C", ROOT, "archive", "--format=tar", revision], capture_output=True, check=False)
    if packed.returncode != 0:
        sys.exit(f"docs: {packed.stderr.decode().strip()}\n  next:  name a tag or a commit of this clone")
    subprocess.run(["tar", "--extract", "--directory", folder], input=packed.stdout, check=True)
    return folder


def list_versions(site: Path) -> None:
    """Write `versions.js` with every version and its pages, newest first, and the page that leads to the first."""
    names = sorted((path.parent.name for path in site.glob("*/README.html")), key=_order, reverse=True)
    releases = [name for name in names if name != MAIN and "-" not in name]
    listed = [{"name": name, "label": f"{name}{_note(name, releases)}", "pages": _pages(site / name)} for name in names]
    (site / "versions.js").write_text(f"window.streamappVersions = {json.dumps(listed, indent=1)};\n")
    (site / "index.html").write_text(INDEX.format(first=(releases or names)[0]))


def _note(name: str, releases: list[str]) -> str:
    if name == MAIN:
        return " (not released)"
    return " (newest)" if releases[:1] == [name] else ""


def _order(name: str) -> tuple[bool, tuple[int, ...], bool, str]:
    """Releases by number, a candidate before its release, and what is not released above all."""
    number, _, candidate = name.partition("-")
    parts = tuple(int(part) for part in number.split(".")) if VERSION.match(name) else ()
    return name == MAIN, parts, not candidate, candidate


def _pages(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.html"))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Build the documentation of one version.")
    parser.add_argument("site", type=Path, help="the folder of all versions")
    parser.add_argument("--version", default=MAIN, help="a number such as 1.2.3; default: main")
    parser.add_argument("--revision", help="a tag or a commit; default: the working tree")
    asked = parser.parse_args()
    build(asked.site, asked.version, asked.revision or None)


if __name__ == "__main__":
    main()
