"""Who wrote what, from the audit log of the embedded lab's API server."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lab.node.layout import Layout
from lab.settings import Settings

_OPERATOR = "system:serviceaccount:streamapp-system:streamapp-operator"
_READS = frozenset({"get", "list", "watch"})


@dataclass(frozen=True)
class Written:
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


def written(namespace: str, since: datetime) -> list[Written]:
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


def _writes(namespaces: Collection[str], since: datetime) -> Iterator[Written]:
    log = Layout(Settings.from_environment().state).audit_log
    # A line is parsed only if it may matter: the log is long.
    marks = [f'"namespace":"{each}"' for each in namespaces]
    for line in log.read_text().splitlines():
        if any(mark in line for mark in marks) and '"verb":"get"' not in line:
            found = _write(json.loads(line))
            if found is not None and found.at >= since:
                yield found


def _write(event: dict[str, Any]) -> Written | None:
    place = event.get("objectRef", {})
    if event["verb"] in _READS:
        return None
    return Written(
        at=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        verb=event["verb"],
        what="/".join(filter(None, (place["resource"], place.get("subresource")))),
        name=f"{place['namespace']}/{place.get('name', '')}",
        by_operator=event["user"]["username"] == _OPERATOR,
    )
