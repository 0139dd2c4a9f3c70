"""Programs that stand in for kubectl, kind and docker where the real ones cannot be let loose."""

import os
from pathlib import Path


class StandIns:
    """Scripts in a folder at the head of PATH, each of which writes down its arguments before it does its part.

    Why stand-ins: what is tested is which commands are given and which are not, in states that no test may bring
    about for real (a user's own namespace about to be deleted) or that this machine cannot have (no Docker).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._calls = folder / "calls"

    @property
    def path(self) -> str:
        """PATH with the stand-ins first."""
        return f"{self.folder}:{os.environ['PATH']}"

    def put(self, name: str, script: str = "") -> None:
        """Make a program of shell lines."""
        program = self.folder / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> {self._calls}\n{script}\n')
        program.chmod(0o755)

    def calls(self) -> list[str]:
        """Give all calls so far, in order, each as one line."""
        return self._calls.read_text().splitlines() if self._calls.exists() else []
