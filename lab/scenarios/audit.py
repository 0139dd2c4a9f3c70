"""What the operator wrote, from the audit log of the embedded lab's API server."""

import json
from collections.abc import Collection
from datetime import datetime

from lab.node.layout import Layout
from lab.settings import Settings

_USER = "system:serviceaccount:streamapp-system:streamapp-operator"
_READS = frozenset({"get", "list", "watch"})


def writes_of_the_operator(since: datetime, namespaces: Collection[str]) -> list[str]:
    """Give everything that the operator wrote into some namespaces since then, each as `patch streamapps/status x`."""
    found = []
    log = Layout(Settings.from_environment().state).audit_log.read_text()
    for event in (json.loads(line) for line in log.splitlines() if _USER in line):
        place = event.get("objectRef", {})
        is_write = event["user"]["username"] == _USER and event["verb"] not in _READS
        is_meant = is_write and place.get("namespace") in namespaces
        if is_meant and datetime.fromisoformat(event["requestReceivedTimestamp"]) >= since:
            what = "/".join(filter(None, (place["resource"], place.get("subresource"))))
            found.append(f"{event['verb']} {what} {place['namespace']}/{place.get('name', '')}")
    return found
