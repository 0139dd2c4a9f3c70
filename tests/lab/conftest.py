"""Tests that need the running lab; `python -m lab test` runs them where the API server and the broker are reached."""

import os
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lab.clusters.cluster import Session, is_session
from lab.clusters.kubectl import Kubectl
from lab.meter.measure import wait_until_caught_up
from lab.node.namespaces import INSIDE
from lab.scenarios import operator_deployment
from lab.scenarios.api_changes import rights_used
from lab.scenarios.demo_application import DemoApplication, fresh_name, preload, remove, start
from tests.lab.rights import GRANTED, USED_IN


@pytest.fixture(scope="session", autouse=True)
def session() -> Session:
    """Give the session that this test process itself runs in.

    These tests write to whatever KUBECONFIG names, so a session is one that the lab made and nothing less.
    """
    if INSIDE not in os.environ and not is_session(os.environ):
        pytest.fail(
            "these tests run in a session of the lab, which asks the allow-list first: "
            "make test, or python -m lab test --keep FILE",
            pytrace=False,
        )
    return Session((), dict(os.environ))


@pytest.fixture(scope="session")
def kubectl(session: Session) -> Kubectl:
    """Give kubectl as the lab's admin."""
    return Kubectl(session)


@pytest.fixture
def namespace(kubectl: Kubectl, request: pytest.FixtureRequest) -> Iterator[str]:
    """Give a namespace of the test's own, gone afterwards."""
    words = re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:50].strip("-")
    # Its end is the test's own: the next turn of a test must not wait until the namespace of the last is gone.
    name = f"t-{words}-{uuid.uuid4().hex[:6]}"
    kubectl.run("create", "namespace", name)
    yield name
    kubectl.run("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def streams_group(session: Session, kubectl: Kubectl) -> Iterator[str]:
    """Deploy the demo application small, with two pods and a standby, and give its application id."""
    application = DemoApplication(fresh_name(), {"STREAMS_NUM_STANDBY_REPLICAS": "1"}, records=20_000)
    remove(kubectl, session.environment["KAFKA_BOOTSTRAP"])
    preload(kubectl, application)
    start(kubectl, application, replicas=2)
    wait_until_caught_up(
        session.environment["KAFKA_BOOTSTRAP"],
        application.input_topic,
        application.output_topic,
        exactly_once=False,
        timeout_s=120,
    )
    os.environ["STREAMS_GROUP"] = application.application_id
    yield application.application_id
    # Later tests have the processors for themselves.
    remove(kubectl, session.environment["KAFKA_BOOTSTRAP"])


@pytest.fixture(scope="session")
def operator(kubectl: Kubectl) -> Iterator[None]:
    """Run one operator for all namespaces, from the first test that asks for it to the last of all.

    One that was there before goes on afterwards.
    """
    was_there = operator_deployment.is_there(kubectl)
    if not (was_there and operator_deployment.is_newest(kubectl)):
        operator_deployment.deploy(kubectl)
    yield
    if not was_there:
        operator_deployment.remove(kubectl)


@pytest.fixture(scope="module", autouse=True)
def rights_are_used(request: pytest.FixtureRequest) -> Iterator[None]:
    """After the tests of a file, see that the operator asked for nothing that it may not, and used what is listed."""
    began = datetime.now(UTC)
    yield
    used = rights_used(began)
    assert used - GRANTED == set()
    file = request.path.relative_to(Path(__file__).parent).as_posix()
    assert USED_IN.get(file, frozenset()) - used == set()


@pytest.fixture(scope="session")
def bootstrap(session: Session) -> str:
    """Give the address of the broker."""
    return session.environment["KAFKA_BOOTSTRAP"]
