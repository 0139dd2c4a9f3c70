"""A tenant claims the application ID of another one, or names a broker in a place that is not his."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from streamapp.api.validation.parse import InvalidStreamApp, Parsed, StreamApp, parse
from streamapp.controller.apps.apps import Applications
from streamapp.controller.apps.bindings import FREE, Bindings
from streamapp.controller.apps.group_poller import PollIntervals
from streamapp.core.facts.group import GroupReading
from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.workload import Workload
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.allowed_brokers import AllowedBrokers
from streamapp.kafka.connection.errors import InvalidSettingsError
from streamapp.kafka.connection.settings import Address, read_settings
from streamapp.kube.client.kinds import Key
from tests.controller.doubles.bench import a_stream_app
from tests.kafka.answers import cluster
from tests.kafka.scripted import ScriptedBroker, always
from tests.support import example

OWNER, SQUATTER = Key("shop", "orders"), Key("elsewhere", "orders")
OTHER_ADDRESSES = replace(
    example.workload(), pods=tuple(replace(pod, ips=(f"10.9.9.{pod.ordinal}",)) for pod in example.workload().pods)
)


def applications(bindings: Bindings = FREE) -> Applications:
    def connect(_: object) -> Any:
        raise AssertionError("no broker is asked here")

    found = Applications(connect, PollIntervals(1, 1, 1), lambda _: None, bindings=bindings)
    for key in (OWNER, SQUATTER):
        found.remember_resource(key, resource(key))
    return found


def resource(key: Key) -> dict[str, Any]:
    app = a_stream_app()
    created = "2026-01-02T00:00:00Z" if key == OWNER else "2026-01-01T00:00:00Z"
    metadata = {"name": key.name, "namespace": key.namespace, "uid": key.namespace, "creationTimestamp": created}
    return {**app, "metadata": {**metadata, "generation": 1}}


def streamapp(key: Key) -> StreamApp:
    found = parse(resource(key))
    assert isinstance(found, StreamApp)
    return found


def remember(apps: Applications, key: Key, workload: Workload, readings: tuple[GroupReading, ...]) -> None:
    memory = apps.get(key, key.namespace).memory
    memory.workload, memory.readings = workload, readings


@pytest.fixture
def apps() -> Iterator[Applications]:
    with closing(applications()) as found:
        yield found


def test_a_squatter_without_members_is_known_as_such_although_he_is_older(apps: Applications) -> None:
    group = example.two_readings(example.members())
    remember(apps, OWNER, example.workload(), group)
    remember(apps, SQUATTER, OTHER_ADDRESSES, group)
    assert apps.is_in_group(OWNER)
    assert [rival.in_group for rival in apps.conflicting(OWNER, streamapp(OWNER))] == [False]
    assert [rival.in_group for rival in apps.conflicting(SQUATTER, streamapp(SQUATTER))] == [True]
    assert not apps.is_in_group(SQUATTER)


def test_a_squatter_whose_own_broker_says_that_his_pods_are_members_is_not_believed(apps: Applications) -> None:
    remember(apps, OWNER, OTHER_ADDRESSES, ())
    remember(apps, SQUATTER, example.workload(), example.two_readings(example.members()))
    assert apps.is_in_group(SQUATTER)
    assert [rival.in_group for rival in apps.conflicting(OWNER, streamapp(OWNER))] == [False]


def test_an_id_that_is_bound_to_a_namespace_makes_no_rival_elsewhere() -> None:
    bindings = Bindings.read(["word*=shop test"])
    with closing(applications(bindings)) as apps:
        assert apps.conflicting(OWNER, streamapp(OWNER)) == ()
    assert bindings.fault("shop", "wordcount") == bindings.fault("elsewhere", "other") == ""
    assert bindings.fault("elsewhere", "wordcount") == (
        "spec.applicationId: wordcount belongs to shop, test; use another application ID, or ask the administrator "
        "(chart value applicationIds)"
    )


def test_a_rival_is_read_once_for_each_version_however_often_passes_ask(
    apps: Applications, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 77 StreamApps of 200 KiB that name one application ID took a minute of processor time each minute before.
    read: list[str] = []

    def counted(one: Mapping[str, Any], before: Parsed | None = None) -> StreamApp | InvalidStreamApp:
        read.append(one["metadata"]["name"])
        return parse(one, before)

    monkeypatch.setattr("streamapp.controller.apps.apps.parse", counted)
    rivals = [Key("elsewhere", f"rival-{number}") for number in range(20)]
    for key in rivals:
        apps.remember_resource(key, resource(key))
    owner = streamapp(OWNER)
    found = [{one.name for one in apps.conflicting(OWNER, owner)} for _ in range(3)]
    assert found == [{f"{key.namespace}/{key.name}" for key in (SQUATTER, *rivals)}] * 3
    assert len(read) == 21

    changed = resource(rivals[0])
    changed["spec"] = {**changed["spec"], "kafka": {"bootstrapServers": "another:9092"}}
    changed["metadata"]["generation"] = 2
    apps.remember_resource(rivals[0], changed)
    apps.remove(rivals[1])
    apps.remember_resource(rivals[1], {**resource(rivals[1]), "spec": {"applicationId": owner.spec.application_id}})
    assert len(apps.conflicting(OWNER, owner)) == 19
    assert read[21:] == ["rival-0", "rival-1"]


@pytest.mark.parametrize("text", ["", "orders", "=shop", "orders=", "or?ers=shop", "or[ab]=shop"])
def test_a_binding_that_binds_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be an application ID"):
        Bindings.read([text])


ALLOWED = AllowedBrokers(("*.kafka.svc:9092", "broker-1.example.org:9093"))


@pytest.mark.parametrize(
    ("address", "is_allowed"),
    [
        (Address("a.kafka.svc", 9092), True),
        (Address("A.Kafka.Svc", 9092), True),
        (Address("a.kafka.svc", 9093), False),
        (Address("kafka.svc", 9092), False),
        (Address("a.kafka.svc.evil.org", 9092), False),
        (Address("evil.org/.kafka.svc", 9092), False),
        (Address("evil@a.kafka.svc", 9092), False),
        (Address("broker-1.example.org", 9093), True),
        (Address("broker-1xexample.org", 9093), False),
        (Address("169.254.169.254", 80), False),
        (Address("fd00::1", 9092), False),
    ],
)
def test_only_allowed_addresses_are_connected_to(address: Address, is_allowed: bool) -> None:
    assert ALLOWED.allow(*address) is is_allowed


def test_an_address_that_is_not_allowed_is_refused_before_its_name_is_resolved() -> None:
    with pytest.raises(InvalidSettingsError, match="the administrator did not allow this address"):
        read_settings("a.kafka.svc:9092,169.254.169.254:80", {}, ALLOWED)


def test_an_address_that_an_allowed_broker_names_is_not_connected_to_unless_it_is_allowed_too() -> None:
    async def main() -> tuple[str, int]:
        elsewhere, broker = ScriptedBroker(), ScriptedBroker()
        async with elsewhere.running(), broker.running():
            broker.handlers["Metadata"] = always(cluster([elsewhere.address], {"t": [0]}))
            settings = replace(broker.settings(), allowed=AllowedBrokers((f"127.0.0.1:{broker.port}",)))
            with closing(KafkaCluster(settings, "app")) as kafka:
                try:
                    await kafka.offsets.ends([TopicPartition("t", 0)], 5)
                except InvalidSettingsError as error:
                    return str(error), len(elsewhere.seen)
        raise AssertionError("it connected")

    said, asked = asyncio.run(main())
    assert "the administrator did not allow this address" in said
    assert asked == 0
