"""Writes SHA256SUMS, the one file that a signature has to cover.

Called by `release.build`, after everything else is made. `sha256sum --check` reads it.
"""

from pathlib import Path

from release import archives

NAME = "SHA256SUMS"


def write(folder: Path) -> Path:
    """List all files of a release by name; give the list."""
    lines = [f"{archives.digest(path)}  {path.name}\n" for path in sorted(folder.iterdir()) if path.name != NAME]
    target = folder / NAME
    target.write_text("".join(lines))
    return target
