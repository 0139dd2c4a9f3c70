"""Packs the pages and the manifests that users read, and writes the page that lies beside the archives.

Called by `release.build`. The pages are the Markdown files of the commit, in the folders that their links name, and the
checker of releases, which needs nothing else.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from release import archives
from release.source import Source

NAME = "streamapp-operator-docs"
PAGES = (
    *("README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "THIRD-PARTY-LICENSES.md", "LICENSE", "NOTICE"),
    *("docs/**/*.md", "docs/*.json", "agent/**/README.md", "charts/*/README.md", "examples/**/README.md"),
    *("examples/**/*.yaml", "crds/*.yaml", "release/verification.py"),
    # Who tries the guarantees on a cluster builds the counter.
    *("examples/counter/Dockerfile", "examples/counter/pom.xml", "examples/counter/src/**/*.*"),
)
"""What is packed, as patterns below the root of the repository."""
INSTRUCTIONS = "INSTALL.md"
PAGE = "docs/releases.md"
SECTIONS = (
    *("What is in it", "Check a release", "Install from a release", "Install the plugin"),
    *("Upgrade and downgrade", "Uninstall", "What a release does not have"),
)
"""Of that page: what a reader needs who has only the folder of the release."""
_LINK = re.compile(r"\]\(([^)#:]*)(#[^)]*)?\)")


def pack(source: Source, target: Path) -> Path:
    """Write the archive into the folder `target`; give its path."""
    made = target / f"{NAME}-{source.version}.tar.gz"
    top = f"{NAME}-{source.version}"
    archives.tar_gz(made, {f"{top}/{name}": path for name, path in _files(source.folder)}, source.epoch)
    return made


def instructions(source: Source, target: Path) -> Path:
    """Write what a user reads first into the folder `target`: no archive has to be opened before it is checked.

    Its links lead to the pages of the archive, unpacked beside that folder.
    """
    parts = re.split(r"^## ", (source.folder / PAGE).read_text(), flags=re.MULTILINE)
    by_title = {part.partition("\n")[0]: f"## {part}" for part in parts[1:]}
    kept = {f"#{title.lower().replace(' ', '-')}" for title in SECTIONS}
    top = f"../{NAME}-{source.version}"

    def led(link: re.Match[str]) -> str:
        page, anchor = link[1], link[2] or ""
        if not page and anchor in kept:
            return link[0]
        place = posixpath.normpath(posixpath.join(posixpath.dirname(PAGE), page)) if page else PAGE
        return f"]({top}/{place}{anchor})"

    head = (
        f"# streamapp-operator {source.version}\n\n"
        "Check this folder first, then install from it.\n"
        f"Links lead to the pages in `{NAME}-{source.version}.tar.gz`, unpacked beside this folder "
        "as [below](#check-a-release).\n\n"
    )
    made = target / INSTRUCTIONS
    made.write_text(head + _LINK.sub(led, "".join(by_title[title] for title in SECTIONS)).rstrip() + "\n")
    return made


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for pattern in PAGES:
        for path in folder.glob(pattern):
            yield path.relative_to(folder).as_posix(), path
