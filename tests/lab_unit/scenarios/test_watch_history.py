"""A watch that was recorded is read as what happened, whole or cut off in the middle."""

import json
from pathlib import Path
from typing import Any

from lab.scenarios.api_changes import WatchHistory


def _event(kind: str, ordinal: int, *, ready: bool = True, deleted: bool = False) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": f"counter-{ordinal}", "uid": f"uid-{ordinal}"}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-31T12:00:00Z"
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {"type": kind, "object": {"metadata": metadata, "status": {"conditions": conditions}}}


def _history(tmp_path: Path, *events: dict[str, Any], cut: str = "") -> WatchHistory:
    file = tmp_path / "changes"
    # kubectl prints one document after the other, indented.
    file.write_text("".join(json.dumps(event, indent=4) + "\n" for event in events) + cut)
    return WatchHistory(file)


def test_changes_come_in_order_and_a_half_written_one_is_left_for_later(tmp_path: Path) -> None:
    history = _history(tmp_path, _event("ADDED", 0), _event("DELETED", 1), cut='{\n    "type": "ADD')
    assert [(change.kind, change.name, change.uid) for change in history.changes()] == [
        ("ADDED", "counter-0", "uid-0"),
        ("DELETED", "counter-1", "uid-1"),
    ]


def test_pods_that_are_down_at_the_same_time_are_told_together(tmp_path: Path) -> None:
    history = _history(
        tmp_path,
        *(_event("ADDED", ordinal) for ordinal in range(3)),
        _event("MODIFIED", 1, deleted=True),
        _event("MODIFIED", 2, ready=False),
        _event("DELETED", 1),
        _event("MODIFIED", 0, ready=False),
        _event("ADDED", 1),
        _event("MODIFIED", 0),
    )
    assert history.pods_down(among=2) == [{"counter-1"}, {"counter-0", "counter-1"}, {"counter-0"}]
    assert history.pods_down(among=1) == [{"counter-0"}]


def test_where_no_pod_goes_down_nothing_is_told(tmp_path: Path) -> None:
    assert _history(tmp_path, _event("ADDED", 0), _event("MODIFIED", 0)).pods_down(among=1) == []
