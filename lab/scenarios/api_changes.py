"""What changed on the API server: every write in the embedded lab's audit log, and every event of a watch."""

import json
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lab.clusters.cluster import Session
from lab.node.layout import Layout
from lab.settings import Settings

_OPERATOR = "system:serviceaccount:streamapp-system:streamapp-operator"
_READS = frozenset({"get", "list", "watch"})


@dataclass(frozen=True)
class Write:
    """One write that the API server took or refused."""

    at: datetime
    """When it was received."""
    verb: str
    what: str
    """Resource and subresource, as `streamapps/status`."""
    name: str
    by_operator: bool

    def __str__(self) -> str:
        """Give it in a line."""
        return f"{self.verb} {self.what} {self.name}"


def writes_since(namespace: str, since: datetime) -> list[Write]:
    """Give every write into a namespace since then, in order."""
    return sorted(_writes({namespace}, since), key=lambda each: each.at)


def writes_of_the_operator(since: datetime, namespaces: Collection[str]) -> list[str]:
    """Give everything that the operator wrote into some namespaces since then, one line each."""
    return [str(each) for each in _writes(namespaces, since) if each.by_operator]


def rights_used(since: datetime) -> set[tuple[str, str, str]]:
    """Give what the operator asked of the API server since then: group, resource with subresource, verb.

    Refused or not; without what everybody may ask, which is about rights and about what is served.
    """
    used = set()
    log = Layout(Settings.from_environment().state).audit_log
    for part in sorted(log.parent.glob(f"{log.stem}*{log.suffix}")):
        with part.open() as lines:
            for line in lines:
                if _OPERATOR in line and (right := _right(json.loads(line), since)) is not None:
                    used.add(right)
    return used


def _right(event: dict[str, Any], since: datetime) -> tuple[str, str, str] | None:
    place = event.get("objectRef")
    if place is None or event["user"]["username"] != _OPERATOR or place.get("apiGroup") == "authorization.k8s.io":
        return None
    if datetime.fromisoformat(event["requestReceivedTimestamp"]) < since:
        return None
    path = "/".join(filter(None, (place["resource"], place.get("subresource"))))
    return place.get("apiGroup", ""), path, event["verb"]


def _writes(namespaces: Collection[str], since: datetime) -> Iterator[Write]:
    log = Layout(Settings.from_environment().state).audit_log
    # A line is parsed only if it may matter: the log is long.
    marks = [f'"namespace":"{each}"' for each in namespaces]
    for line in log.read_text().splitlines():
        if any(mark in line for mark in marks) and '"verb":"get"' not in line:
            found = _write(json.loads(line))
            if found is not None and found.at >= since:
                yield found


def _write(event: dict[str, Any]) -> Write | None:
    place = event.get("objectRef", {})
    # The operator asks now and then what an apply would change; a dry run writes nothing.
    if event["verb"] in _READS or "dryRun=All" in event.get("requestURI", ""):
        return None
    return Write(
        at=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        verb=event["verb"],
        what="/".join(filter(None, (place["resource"], place.get("subresource")))),
        name=f"{place['namespace']}/{place.get('name', '')}",
        by_operator=event["user"]["username"] == _OPERATOR,
    )


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


class WatchHistory:
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
def watch_history(session: Session, namespace: str, kind: str, *selection: str) -> Iterator[WatchHistory]:
    """Record what happens to the objects of a kind, until the block is left."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "changes"
        command = ("kubectl", "get", kind, "--namespace", namespace, *selection)
        flags = ("--watch", "--output-watch-events", "--output=json")
        with file.open("wb") as output:
            watch = subprocess.Popen((*session.prefix, *command, *flags), env=session.environment, stdout=output)
        try:
            yield WatchHistory(file)
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
