"""The audit log is read as a list of writes, and says whose they are."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lab.node.layout import Layout
from lab.scenarios.api_changes import rights_used, writes_of_the_operator, writes_since

OPERATOR = "system:serviceaccount:streamapp-system:streamapp-operator"
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def _event(second: int, verb: str, user: str, namespace: str, resource: str, subresource: str = "") -> dict[str, Any]:
    place = {"resource": resource, "namespace": namespace, "name": "counter"}
    return {
        "verb": verb,
        "user": {"username": user},
        "objectRef": place | ({"subresource": subresource} if subresource else {}),
        "requestReceivedTimestamp": f"2026-01-31T12:00:{second:02}.5Z",
    }


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a log into a state folder of the test's own."""
    monkeypatch.setenv("STREAMAPP_LAB_STATE", str(tmp_path))
    events = [
        _event(9, "patch", OPERATOR, "mine", "statefulsets"),
        _event(1, "patch", OPERATOR, "mine", "streamapps", "status"),
        _event(2, "update", "lab-admin", "mine", "streamapps", "scale"),
        _event(3, "get", OPERATOR, "mine", "statefulsets"),
        _event(4, "watch", OPERATOR, "mine", "pods"),
        _event(5, "delete", OPERATOR, "other", "pods"),
        _event(6, "patch", OPERATOR, "mine", "statefulsets") | {"requestURI": "/apis/apps/v1/…?dryRun=All&force=true"},
        {"verb": "get", "user": {"username": OPERATOR}, "requestReceivedTimestamp": "2026-01-31T12:00:05Z"},
    ]
    file = Layout(tmp_path).audit_log
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events))


def test_writes_come_in_order_and_reads_and_dry_runs_do_not_count() -> None:
    assert [(str(each), each.by_operator) for each in writes_since("mine", NOON)] == [
        ("patch streamapps/status mine/counter", True),
        ("update streamapps/scale mine/counter", False),
        ("patch statefulsets mine/counter", True),
    ]


def test_what_was_written_before_or_by_others_is_not_the_operators() -> None:
    assert writes_of_the_operator(NOON.replace(second=2), {"mine", "other"}) == [
        "patch statefulsets mine/counter",
        "delete pods other/counter",
    ]


def test_every_right_that_the_operator_used_counts_once_and_no_one_elses() -> None:
    assert rights_used(NOON) == {
        ("", "statefulsets", "patch"),
        ("", "streamapps/status", "patch"),
        ("", "statefulsets", "get"),
        ("", "pods", "watch"),
        ("", "pods", "delete"),
    }
    assert rights_used(NOON.replace(second=4)) == {
        ("", "statefulsets", "patch"),
        ("", "pods", "watch"),
        ("", "pods", "delete"),
    }


def test_an_older_part_of_the_log_counts_as_well(tmp_path: Path) -> None:
    event = _event(1, "list", OPERATOR, "mine", "services")
    (Layout(tmp_path).audit_log.parent / "audit-2026-01-31T12-00-02.000.log").write_text(json.dumps(event) + "\n")
    assert ("", "services", "list") in rights_used(NOON)
