"""`python -m streamapp prepare-uninstall`: raised standbys are put back, and a later operator goes on with the hold."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from kubernetes.aio.client.configuration import Configuration

from streamapp.api.names import HOLD_RECORD
from streamapp.api.objects import manifests
from streamapp.controller.ports import KafkaStepError, Poll
from streamapp.controller.settings import Settings
from streamapp.controller.uninstall import command, standbys
from streamapp.core.facts.group import (
    GroupDescription,
    GroupState,
    GroupUnreadable,
    Member,
    StandbySetting,
    StandbySettingUnread,
)
from streamapp.core.facts.hold_annotation import decode, encode
from streamapp.core.facts.hold_record import Epoch, HoldRecord, RaisedStandbys, RaiseState
from streamapp.core.reasons import Reason
from tests.kube.api_server import ApiServer
from tests.streamapps import a_streamapp, stored
from tests.support.example import NOW, member
from tests.support.streams import streams_group, streams_members

Json = dict[str, Any]
HERE = manifests.Installation(name="streamapp-operator", seed_image="seed:1", agent_image="agent:1")
LEASE = {
    "metadata": {"namespace": "system", "name": "streamapp-operator"},
    "spec": {"holderIdentity": "one", "leaseDurationSeconds": 15, "leaseTransitions": 3},
}
SEEN = RaisedStandbys(before=None, instead_of=0, to=1, at=NOW - timedelta(seconds=20), state=RaiseState.SEEN)
ONE = StandbySetting(1, is_set=True)
UNSET = StandbySetting(0, is_set=False)
PODS = 3
IN_ORDER = ["leases", "statefulsets", "leases"]


def members(*ordinals: int) -> tuple[Member, ...]:
    return streams_members(member(ordinal, active=(ordinal,)) for ordinal in ordinals)


@dataclass
class Group:
    """The brokers' side of one application."""

    setting: StandbySetting | StandbySettingUnread = ONE
    members: tuple[Member, ...] = field(default_factory=lambda: members(*range(PODS)))
    unreadable: GroupUnreadable | None = None
    is_refused: bool = False
    written: list[int | None] = field(default_factory=list)
    is_closed: bool = False
    state: GroupState = GroupState.STABLE
    now: Callable[[], RaisedStandbys | None] = lambda: None
    """Gives what the hold record says."""
    said: list[RaisedStandbys | None] = field(default_factory=list)
    """What it said at each write."""

    async def describe(self) -> Poll:
        streams = replace(streams_group(), standbys=self.setting)
        return Poll(self.unreadable or GroupDescription(self.state, self.members, streams))

    async def standbys(self) -> StandbySetting | StandbySettingUnread:
        return self.setting

    def close(self) -> None:
        self.is_closed = True

    async def set_standbys(self, replicas: int | None, instead_of: StandbySetting | None = None) -> None:
        assert instead_of == self.setting
        if self.is_refused:
            raise KafkaStepError("ALTER_CONFIGS on group counter is missing")
        self.written.append(replicas)
        self.said.append(self.now())


def put(server: ApiServer, raised: RaisedStandbys | None, pods: int = PODS, installation: str = HERE.name) -> None:
    """A StreamApp with its StatefulSet, whose record has that raise, and its pods."""
    app = a_streamapp()
    server.put("streamapps", stored())
    manifest = manifests.with_replicas(manifests.statefulset(app, replace(HERE, name=installation)), PODS)
    record = HoldRecord(epoch=Epoch(lease=3, counter=1), standbys=raised)
    annotations = {**manifest["metadata"].get("annotations", {}), HOLD_RECORD: encode(record)}
    server.put("statefulsets", {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}})
    for ordinal in range(pods):
        put_pod(server, ordinal)


def put_pod(server: ApiServer, ordinal: int, **metadata: Any) -> None:
    app = a_streamapp()
    template = manifests.statefulset(app, HERE)["spec"]["template"]["metadata"]["labels"]
    name = {"namespace": app.metadata.namespace, "name": f"{app.metadata.name}-{ordinal}", "labels": template}
    running = {"containerID": f"containerd://{ordinal}", "state": {"running": {}}}
    pod = {"metadata": {**name, **metadata}, "status": {"containerStatuses": [running]}}
    server.put("pods", pod)


@pytest.fixture
def server() -> ApiServer:
    """An API server with a Lease."""
    made = ApiServer(lambda: NOW)
    made.put("leases", LEASE)
    return made


@dataclass
class Played:
    """What the command did."""

    code: int
    out: str
    err: str
    record: RaisedStandbys | None
    writes: list[str]


@pytest.fixture
def play(server: ApiServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command against that server and a group."""

    def recorded() -> RaisedStandbys | None:
        live = server.get("statefulsets", a_streamapp().metadata.namespace, a_streamapp().metadata.name)
        assert live is not None
        assert live["spec"]["replicas"] == PODS
        record = decode(live["metadata"]["annotations"][HOLD_RECORD])
        assert isinstance(record, HoldRecord)
        return record.standbys

    def run(group: Group) -> Played:
        group.now = recorded

        async def main() -> int:
            async with server.serving() as url:

                async def own() -> Configuration:
                    return Configuration(host=url)

                monkeypatch.setattr(command, "own_configuration", own)
                monkeypatch.setattr(standbys, "connect", lambda *_, **__: group)
                monkeypatch.setattr(standbys, "LOOK_SECONDS", 0.01)
                monkeypatch.setattr(standbys, "PATIENCE_SECONDS", 0.03)
                environment = {"STREAMAPP_LEASE_RENEW_SECONDS": "0.01", "STREAMAPP_LEASE_NAMESPACE": "system"}
                return await command._prepare(Settings.from_environment(environment))

        code = asyncio.run(main())
        said = capsys.readouterr()
        return Played(code, said.out, said.err, recorded(), [write.plural for write in server.writes])

    return run


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(("before", "said"), [(None, "the brokers' default"), (0, "0")])
def test_what_the_operator_raised_is_put_back_and_the_record_says_so_first(
    before: int | None, said: str, server: ApiServer, play: Any
) -> None:
    put(server, replace(SEEN, before=before))
    group = Group()
    played = play(group)
    assert (played.code, group.written, group.is_closed, played.writes) == (0, [before], True, IN_ORDER)
    assert (played.record.state, played.record.before) == (RaiseState.RETURNING, before)
    assert group.said == [played.record]
    assert f"are as they were: {said}" in played.out


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("setting", [StandbySetting(2, is_set=True), UNSET])
def test_the_value_of_another_hand_stays(setting: StandbySetting, server: ApiServer, play: Any) -> None:
    put(server, SEEN)
    group = Group(setting)
    assert (play(group).code, group.written) == (0, [])


def test_without_a_raise_nothing_but_the_lease_is_written(server: ApiServer, play: Any) -> None:
    put(server, None)
    group = Group()
    assert (play(group).writes, group.written) == (["leases", "leases"], [])


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("installation", ["another", HERE.name])
def test_another_installations_raise_and_another_hands_value_are_not_ours(
    installation: str, server: ApiServer, play: Any
) -> None:
    state = RaiseState.SEEN if installation == "another" else RaiseState.FOREIGN
    put(server, replace(SEEN, state=state), installation=installation)
    assert play(Group()).writes == ["leases", "leases"]


@pytest.mark.guarantee(1)
def test_while_a_pod_is_on_its_way_out_its_tasks_keep_their_standbys(server: ApiServer, play: Any) -> None:
    put(server, SEEN, pods=PODS - 1)
    put_pod(server, PODS - 1, deletionTimestamp="2026-01-01T00:00:00Z")
    group = Group()
    played = play(group)
    assert (played.code, group.written, played.record) == (1, [], SEEN)
    assert "pods are on their way out" in played.err


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(
    ("group", "why"),
    [
        (Group(members=members(0, 1, 2, 3)), "members of pods that are gone"),
        (Group(state=GroupState.RECONCILING), "the group is Reconciling"),
        (Group(unreadable=GroupUnreadable(Reason.BrokersUnreachable, "no answer within 5 s")), "no answer within 5 s"),
        (Group(StandbySettingUnread("DESCRIBE_CONFIGS is missing")), "DESCRIBE_CONFIGS is missing"),
        (Group(is_refused=True), "ALTER_CONFIGS on group counter is missing"),
    ],
)
def test_what_stays_is_told_with_its_cause_and_the_next_step(
    group: Group, why: str, server: ApiServer, play: Any
) -> None:
    put(server, SEEN)
    played = play(group)
    assert (played.code, group.written) == (1, [])
    assert (why in played.err, "kafka-configs.sh" in played.err) == (True, True)


def test_a_streamapp_that_cannot_be_read_is_told(server: ApiServer, play: Any) -> None:
    put(server, SEEN)
    server.remove("streamapps", a_streamapp().metadata.namespace, a_streamapp().metadata.name)
    played = play(Group())
    assert (played.code, "wordcount" in played.err) == (1, True)
