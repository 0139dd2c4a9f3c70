"""Everything that happens to some objects of a namespace, recorded from a watch: no state in between is missed."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.clusters.cluster import Session

_ENDS_WITHIN_SECONDS = 10.0


@dataclass(frozen=True)
class Change:
    """One event of the watch."""

    kind: str
    """ADDED (the objects that are there at the beginning included), MODIFIED or DELETED."""
    object: dict[str, Any]

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.object["metadata"]["name"])

    @property
    def uid(self) -> str:
        """The object's UID."""
        return str(self.object["metadata"]["uid"])


class History:
    """The changes so far."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def changes(self) -> list[Change]:
        """Give all of them, in order."""
        decoder, text, found, at = json.JSONDecoder(), self._file.read_text(), [], 0
        while (at := _next(text, at)) < len(text):
            try:
                event, at = decoder.raw_decode(text, at)
            except json.JSONDecodeError:
                break  # the last one is still being written
            found.append(Change(event["type"], event["object"]))
        return found

    def pods_down(self, among: int) -> list[frozenset[str]]:
        """Every set of pods, of those with an ordinal below `among`, that were not ready at the same time, in order.

        A pod that is being deleted is down, however ready its containers are.
        """
        ready: dict[str, bool] = {}
        down: list[frozenset[str]] = []
        for change in self.changes():
            if int(change.name.rsplit("-", 1)[1]) < among:
                ready[change.name] = change.kind != "DELETED" and _is_ready(change.object)
            now = frozenset(name for name, is_ready in ready.items() if not is_ready)
            if now and (not down or down[-1] != now):
                down.append(now)
        return down


@contextmanager
def recorded(session: Session, namespace: str, kind: str, *selection: str) -> Iterator[History]:
    """Record what happens to the objects of a kind, until the block is left."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "changes"
        command = ("kubectl", "get", kind, "--namespace", namespace, *selection)
        flags = ("--watch", "--output-watch-events", "--output=json")
        with file.open("wb") as output:
            watch = subprocess.Popen((*session.prefix, *command, *flags), env=session.environment, stdout=output)
        try:
            yield History(file)
        finally:
            watch.terminate()
            watch.wait(_ENDS_WITHIN_SECONDS)


def _next(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = {each["type"]: each["status"] for each in pod.get("status", {}).get("conditions", [])}
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]
