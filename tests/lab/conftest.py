"""Tests that need the running lab; `python -m lab test` runs them where the API server and the broker are reached."""

import json
import os
from collections.abc import Iterator

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl
from lab.meter.measure import wait_until_caught_up
from lab.scenarios.demo_application import NAMESPACE, DemoApplication, fresh_name, preload, remove, start


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


@pytest.fixture(scope="session")
def streams_group(session: Session, kubectl: Kubectl) -> str:
    """Give the application id of a running demo application: the one that an earlier test left, or a small new one."""
    found = kubectl.run(
        *("get", "statefulset", "counter", "--namespace", NAMESPACE, "--ignore-not-found", "--output=json")
    )
    if not found:
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
    else:
        container = json.loads(found)["spec"]["template"]["spec"]["containers"][0]
        os.environ["STREAMS_GROUP"] = next(e["value"] for e in container["env"] if e["name"] == "APPLICATION_ID")
    return os.environ["STREAMS_GROUP"]
