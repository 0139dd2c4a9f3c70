"""The group's reader: which of the broker's refusals pass. Reading a real group is done in the lab tests."""

import socket

import pytest
from confluent_kafka import KafkaError

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl
from lab.errors import NotYetError
from lab.scenarios import group
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.group import GroupReader, passes


@pytest.mark.parametrize(
    "code", [KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.REQUEST_TIMED_OUT]
)
def test_a_broker_that_is_about_to_answer_is_asked_again(code: int) -> None:
    assert passes(KafkaError(code))


@pytest.mark.parametrize(
    "code",
    [KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNSUPPORTED_VERSION],
)
def test_a_refusal_that_stays_ends_the_wait(code: int) -> None:
    assert not passes(KafkaError(code))


def test_a_broker_that_is_not_reached_may_be_in_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "_TIMEOUT_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        reader = GroupReader(address, Kubectl(Session((), {})), DemoApplication("counter-7"))
        with pytest.raises(NotYetError, match="group counter-7: the broker gives no answer"):
            reader.clock_ms(1)
