"""Statuses for tests, made the only way there is: a snapshot, a decision, the translation."""

from typing import Any

from streamapp.api.status.translate import policy_of, status_of
from streamapp.api.v1alpha1.status import StreamAppStatus
from streamapp.api.validation.parse import InvalidStreamApp, StreamApp
from streamapp.core.decide import decide
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.status.gaps import Gap, GapUnknown
from tests.builders import a_snapshot
from tests.conformance import violations
from tests.streamapps import a_streamapp
from tests.support import example

Json = dict[str, Any]


def answer(
    snapshot: Snapshot,
    *,
    found: StreamApp | InvalidStreamApp | None = None,
    previous: Json | None = None,
    policy: ScalingPolicy | None = None,
    gap: Gap | GapUnknown | None = None,
) -> Json:
    """The status that a snapshot leads to; it conforms, or the test fails."""
    found = found or a_streamapp()
    before = StreamAppStatus.model_validate(previous or {})
    decided = decide(snapshot, policy or (policy_of(found) if isinstance(found, StreamApp) else ScalingPolicy()))
    status = status_of(found, decided, snapshot, before, gap)
    assert violations(status, generation=snapshot.app.generation, now=snapshot.now, previous=previous) == []
    return status


def held_status(*, generation: int = 1) -> Json:
    """Of three pods, one of which is held since its tasks' copies are behind and do not come nearer."""
    members = example.members(3, lag=50_000)
    return answer(a_snapshot(members=members, app={"generation": generation}))
