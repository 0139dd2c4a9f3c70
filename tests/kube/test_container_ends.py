"""How a pod's status tells that a container has ended."""

from datetime import UTC, datetime
from typing import Any

from streamapp.core.facts.containers import ContainerEnd
from streamapp.kube.objects.from_json import container_ends


def a_pod(**terminated: Any) -> dict[str, Any]:
    state = {"containerID": "containerd://1", "finishedAt": "2026-11-21T12:00:00Z", "reason": "Error", **terminated}
    statuses = [{"name": "app", "lastState": {"terminated": state}}]
    return {"metadata": {"uid": "pod-1"}, "status": {"containerStatuses": statuses}}


def test_an_end_has_its_time_its_reason_and_its_exit_code() -> None:
    assert container_ends(a_pod(exitCode=137, startedAt="2026-11-21T11:00:00Z")) == (
        ContainerEnd(
            pod_uid="pod-1",
            container_id="containerd://1",
            finished_at=datetime(2026, 11, 21, 12, tzinfo=UTC),
            reason="Error",
            exit_code=137,
            started_at=datetime(2026, 11, 21, 11, tzinfo=UTC),
        ),
    )


def test_an_exit_code_that_is_not_told_is_not_known() -> None:
    (end,) = container_ends(a_pod())
    assert end.exit_code is None
