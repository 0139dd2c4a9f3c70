"""A pod that nobody asked to go costs seconds and no record: its container dies, or its node.

Each way of an unplanned death is played once, and its gap is held against the broker's session timeout.
"""

import os

import pytest

from lab.clusters.cluster import Session
from lab.meter.counts import CountVerdict
from lab.node.namespaces import INSIDE
from lab.scenarios.departures import KINDS, Departer, Departures
from tests.lab.promises import SESSION_TIMEOUT_SECONDS

pytestmark = [
    pytest.mark.proofs,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(INSIDE not in os.environ, reason="only the embedded lab adds a node to itself"),
]
DEATHS = ("kill", "out-of-memory", "node-lost")


@pytest.fixture(scope="module", params=["on-demand-exactly-once", "standby"])
def deaths(request: pytest.FixtureRequest, session: Session, operator: None) -> Departures:  # noqa: ARG001 (it must run)
    """Let the pods of one application die in every way."""
    (found,) = Departer(session, rate=100, turns=1).run([KINDS[request.param]], DEATHS)
    return found


@pytest.mark.parametrize("way", ["kill", "out-of-memory"])
def test_a_container_that_dies_costs_less_than_the_session_timeout(deaths: Departures, way: str) -> None:
    (death,) = deaths.of(way)
    assert death.gap is not None
    assert death.gap < SESSION_TIMEOUT_SECONDS


def test_a_node_that_is_lost_costs_the_session_timeout_and_not_the_time_until_the_pod_is_back(
    deaths: Departures,
) -> None:
    """Nobody knows that its containers have ended, so that its members stay until the broker gives them up."""
    (death,) = deaths.of("node-lost")
    assert death.gap is not None
    assert death.gap < SESSION_TIMEOUT_SECONDS + 15


def test_no_record_was_lost_and_none_was_doubled(deaths: Departures) -> None:
    assert deaths.counts.verdict is CountVerdict.KEPT
