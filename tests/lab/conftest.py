"""Tests that need the running lab; `python -m lab test` runs them where the API server and the broker are reached."""

import os
from collections.abc import Iterator

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl


@pytest.fixture(scope="session")
def session() -> Session:
    """Give the session that this test process itself runs in."""
    if "KAFKA_BOOTSTRAP" not in os.environ:
        pytest.fail("these tests run inside the lab: make test-lab, or python -m lab test --keep")
    return Session((), dict(os.environ))


@pytest.fixture(scope="session")
def kubectl(session: Session) -> Kubectl:
    """Give kubectl as the lab's admin."""
    return Kubectl(session)


@pytest.fixture
def namespace(kubectl: Kubectl, request: pytest.FixtureRequest) -> Iterator[str]:
    """Give a namespace of the test's own, gone afterwards."""
    name = "t-" + request.node.name.replace("test_", "").replace("_", "-")[:50].strip("-")
    kubectl.run("create", "namespace", name)
    yield name
    kubectl.run("delete", "namespace", name, "--wait=false")
