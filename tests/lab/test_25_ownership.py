"""Namespaces and topics that the lab did not make stay as they are; what it made goes."""

import os
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lab.clusters.kubectl import Kubectl, wait_until
from lab.clusters.ownership import LABEL, MARK, require_own
from lab.errors import LabError
from lab.scenarios import demo_application

pytestmark = [pytest.mark.lab]


def test_a_namespace_without_the_labs_label_is_refused(kubectl: Kubectl, namespace: str) -> None:
    with pytest.raises(LabError) as raised:
        require_own(kubectl, "no-such-namespace", namespace)
    assert raised.value.what == f"namespace {namespace}: not the lab's"


def test_a_namespace_with_another_makers_label_is_refused(kubectl: Kubectl, namespace: str) -> None:
    kubectl.run("label", "namespace", namespace, f"{LABEL}=Helm")
    with pytest.raises(LabError, match=f"namespace {namespace}: not the lab's"):
        require_own(kubectl, namespace)


def test_namespaces_that_are_marked_or_not_there_are_the_labs(kubectl: Kubectl, namespace: str) -> None:
    kubectl.run("label", "namespace", namespace, f"{LABEL}={MARK}")
    require_own(kubectl, namespace, "no-such-namespace", "kafka")


@pytest.fixture
def admin() -> AdminClient:
    """Give a client of the broker."""
    return AdminClient({"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP"]})


@pytest.fixture
def topics(admin: AdminClient) -> Iterator[dict[str, str]]:
    """Make topics of an earlier run, and one that only looks a little like them."""
    names = {
        "input": "counter-0101-000000-input",
        "output": "counter-0101-000000-output",
        "changelog": "counter-0101-000000-counts-changelog",
        "other": f"counter-{uuid.uuid4().hex}-input",
    }
    wanted = [NewTopic(name, num_partitions=1, replication_factor=1) for name in names.values()]
    for made in admin.create_topics(wanted).values():
        made.result(20)
    yield names
    left = [name for name in names.values() if name in admin.list_topics(timeout=20).topics]
    for deleted in admin.delete_topics(left).values():
        deleted.result(20)


def test_topics_of_earlier_runs_are_deleted_and_no_others(admin: AdminClient, topics: dict[str, str]) -> None:
    def present() -> set[str]:
        return set(admin.list_topics(timeout=20).topics) & set(topics.values())

    wait_until("the topics to be there", lambda: present() == set(topics.values()), 20)
    demo_application.remove_topics(os.environ["KAFKA_BOOTSTRAP"])
    wait_until("the topics to be gone", lambda: present() == {topics["other"]}, 20)
