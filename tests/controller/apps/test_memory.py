"""What the process remembers of one application."""

from datetime import UTC, datetime, timedelta

import pytest

from streamapp.controller.apps.memory import Memory
from streamapp.core.facts.containers import ContainerEnd

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def end(finished_at: datetime, reason: str = "Error") -> ContainerEnd:
    return ContainerEnd(pod_uid="p", container_id="c", finished_at=finished_at, reason=reason)


@pytest.mark.guarantee(7)
def test_a_container_ended_at_the_latest_when_it_was_reported_however_far_ahead_the_nodes_clock_is() -> None:
    memory = Memory(uid="u")
    memory.record_terminations((end(NOW + timedelta(minutes=1)),), NOW)
    memory.record_terminations((end(NOW + timedelta(minutes=1)),), NOW + timedelta(seconds=30))
    assert memory.ends["c"].finished_at == NOW


def test_the_nodes_clock_counts_where_it_is_behind() -> None:
    memory = Memory(uid="u")
    memory.record_terminations((end(NOW - timedelta(seconds=5)),), NOW)
    assert memory.ends["c"].finished_at == NOW - timedelta(seconds=5)
