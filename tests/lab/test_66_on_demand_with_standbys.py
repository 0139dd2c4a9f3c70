"""Learners on demand where the application has a standby for each task besides: the pods are drained all the same."""

from collections.abc import Iterator

import pytest

from lab.clusters.kubectl import Kubectl
from lab.scenarios.observed_app import ObservedApp
from tests.lab import on_demand
from tests.lab.on_demand import Scaled
from tests.lab.promises import require_no_record_lost

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(420)]
KINDS = {
    "standby": {"STREAMS_NUM_STANDBY_REPLICAS": "1"},
    "standby-exactly-once": {"STREAMS_NUM_STANDBY_REPLICAS": "1", "EXACTLY_ONCE": "true"},
}


@pytest.fixture(scope="module")
def kinds(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[dict[str, ObservedApp]]:  # noqa: ARG001 (it must run)
    """Deploy all of them with three pods under load."""
    with on_demand.applications(kubectl, bootstrap, KINDS) as made:
        yield made


@pytest.fixture(scope="module")
def drained(kinds: dict[str, ObservedApp], bootstrap: str) -> dict[str, Scaled]:
    """Scale all of them down by one."""
    return on_demand.drain_the_last_of_three(kinds, bootstrap)


@pytest.mark.parametrize("kind", KINDS)
def test_the_agents_are_at_work_in_every_pod(kinds: dict[str, ObservedApp], kind: str) -> None:
    on_demand.require_agents(kinds[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_a_pod_is_drained_before_it_goes(kinds: dict[str, ObservedApp], drained: dict[str, Scaled], kind: str) -> None:
    on_demand.require_drained(kinds[kind], drained[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_no_record_was_lost_and_where_it_is_promised_none_was_doubled(kinds: dict[str, ObservedApp], kind: str) -> None:
    require_no_record_lost(kinds[kind])
