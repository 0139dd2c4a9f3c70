"""Takes what a commit has, and nothing that only lies beside it: the first step of every release.

Called by `release.build`. A tree with changes is refused, since nothing could say later what was built from it.
"""

import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError


@dataclass(frozen=True)
class Source:
    """The files of one commit in a folder of their own."""

    folder: Path
    """All files of the commit, as old as it; no `.git`."""
    commit: str
    """Its full hash."""
    epoch: int
    """When it was committed, in seconds since 1970: the time of everything that is made of it."""
    version: str
    """The version of the product, which chart, agent and plugin share."""

    def environment(self) -> dict[str, str]:
        """Give the variables by which tools agree on the time of what they make."""
        return {"SOURCE_DATE_EPOCH": str(self.epoch), "TZ": "UTC", "LC_ALL": "C.UTF-8"}


def export(repository: Path, folder: Path) -> Source:
    """Write the files of the commit that is checked out into `folder`, which is made.

    Raises LabError if the repository has changes that are not committed, or is none.
    """
    changes = _git(repository, "status", "--porcelain", "--untracked-files=all").decode().splitlines()
    if changes:
        named = ", ".join(line[3:] for line in changes[:5]) + (", …" if changes[5:] else "")
        raise LabError(
            f"release: {repository} differs from its commit",
            f"{len(changes)} files are changed or not committed: {named}",
            "commit or remove them; a release is made of a commit alone",
        )
    commit = _git(repository, "rev-parse", "HEAD").decode().strip()
    epoch = int(_git(repository, "show", "--no-patch", "--format=%ct", commit))
    folder.mkdir(parents=True)
    # The umask of git's own archives would give the group the right to write.
    packed = _git(repository, "-c", "tar.umask=0022", "archive", "--format=tar", commit)
    subprocess.run(["tar", "--extract", "--directory", folder], input=packed, check=True)
    version = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["version"]
    return Source(folder, commit, epoch, version)


def commit_of(repository: Path, revision: str) -> str:
    """Give the full hash of the commit that a revision names; LabError if there is none."""
    return _git(repository, "rev-parse", "--verify", f"{revision}^{{commit}}").decode().strip()


def _git(repository: Path, *arguments: str) -> bytes:
    try:
        ran = subprocess.run(["git", "-C", repository, *arguments], capture_output=True, check=False)
    except FileNotFoundError as error:
        raise LabError("git: not found", "it is not in PATH", "apt-get install git") from error
    if ran.returncode != 0:
        raise LabError(
            f"release: git {arguments[0]} failed in {repository}",
            ran.stderr.decode(errors="replace").strip(),
            "run make release in a clone of the project with at least one commit",
        )
    return ran.stdout
