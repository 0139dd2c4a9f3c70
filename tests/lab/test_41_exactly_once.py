"""The demo application's switches at work: exactly-once, and an application that leaves its group when it closes."""

import pytest

from lab.clusters.cluster import Session
from lab.meter.counts import CountVerdict
from lab.scenarios.demo_application import DemoApplication, fresh_name
from lab.scenarios.plain_scale_in import PlainScaleIn, ScaleInResult
from tests.lab.promises import SESSION_TIMEOUT_SECONDS

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def outcome(session: Session) -> ScaleInResult:
    """Scale in once, with little state, exactly-once, and a pod that says good-bye."""
    settings = {"STREAMS_NUM_STANDBY_REPLICAS": "1", "EXACTLY_ONCE": "true", "LEAVE_ON_CLOSE": "true"}
    return PlainScaleIn(session, DemoApplication(fresh_name(), settings, records=20_000, rate=500)).run()


def test_nothing_is_lost_and_nothing_is_doubled(outcome: ScaleInResult) -> None:
    assert outcome.counts.exactly_once
    assert (outcome.counts.lost, outcome.counts.doubled, outcome.counts.overcounted) == (0, 0, 0)
    assert outcome.counts.verdict is CountVerdict.KEPT


def test_a_pod_that_leaves_the_group_does_not_make_its_users_wait_for_the_session_timeout(
    outcome: ScaleInResult,
) -> None:
    (scale_in,) = outcome.scale_ins
    assert scale_in.worst_moved is not None
    assert scale_in.worst_moved < SESSION_TIMEOUT_SECONDS
