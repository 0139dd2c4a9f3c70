"""What users suffer without the operator, in small: the figure that everything else must beat."""

import pytest

from lab.clusters.cluster import Session
from lab.meter.counts import CountVerdict
from lab.scenarios.demo_application import DemoApplication, fresh_name
from lab.scenarios.plain_scale_in import PARTITIONS, PlainScaleIn, ScaleInResult
from tests.lab.promises import SESSION_TIMEOUT_SECONDS

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def outcome(session: Session) -> ScaleInResult:
    """Play the scenario once, with a tenth of the demo's state."""
    application = DemoApplication(fresh_name(), {"STREAMS_NUM_STANDBY_REPLICAS": "1"}, records=100_000, rate=500)
    return PlainScaleIn(session, application).run()


def test_the_partitions_of_the_pod_that_leaves_are_silent_for_the_session_timeout(outcome: ScaleInResult) -> None:
    (scale_in,) = outcome.scale_ins
    leaving = {number for number, move in scale_in.moved.items() if move.before == "counter-2"}
    assert len(leaving) == PARTITIONS // 3
    gaps = {row.partition: row.seconds for row in scale_in.during.partitions if row.partition in leaving}
    assert all(gap is not None and gap > SESSION_TIMEOUT_SECONDS for gap in gaps.values()), gaps


def test_the_gap_of_the_others_is_shorter_by_far(outcome: ScaleInResult) -> None:
    (scale_in,) = outcome.scale_ins
    assert scale_in.worst_untouched is not None
    assert scale_in.worst_untouched < SESSION_TIMEOUT_SECONDS


def test_quiet_time_has_no_gap_like_it(outcome: ScaleInResult) -> None:
    worst = outcome.scale_ins[0].before.worst()
    assert worst is not None
    assert worst.seconds is not None
    assert worst.seconds < SESSION_TIMEOUT_SECONDS


def test_nothing_is_lost(outcome: ScaleInResult) -> None:
    assert outcome.counts.nothing_lost
    assert outcome.counts.verdict is CountVerdict.KEPT
    assert outcome.counts.inputs >= 100_000
