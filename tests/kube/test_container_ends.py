"""How a pod's status tells that a container has ended."""

from datetime import UTC, datetime
from typing import Any

import pytest

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
            is_followed=True,
        ),
    )


def test_an_exit_code_that_is_not_told_is_not_known() -> None:
    (end,) = container_ends(a_pod())
    assert end.exit_code is None


@pytest.mark.parametrize(("newest", "is_followed"), [("containerd://1", False), ("containerd://2", True)])
def test_an_end_is_followed_once_another_container_has_begun(newest: str, is_followed: bool) -> None:
    """While the kubelet waits before it starts another one, the newest is the one that has ended."""
    pod = a_pod()
    pod["status"]["containerStatuses"][0]["containerID"] = newest
    (end,) = container_ends(pod)
    assert end.is_followed is is_followed
