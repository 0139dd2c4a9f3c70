"""Raised standbys of a streams group when the StreamApp, and with it the hold record, is gone."""

import asyncio
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest

from streamapp.controller.apps.apps import Applications
from streamapp.controller.apps.memory import Memory
from streamapp.controller.apps.raise_watch import RaiseWatch
from streamapp.controller.leader.leadership import ALONE, Alone, Leadership, NotLeadingError
from streamapp.controller.metrics import Metrics
from streamapp.controller.ports import KafkaStepError, Poll
from streamapp.controller.reconcile.apply import Applier
from streamapp.controller.reconcile.gather import OtherInstallation
from streamapp.controller.reconcile.reconciler import Reconciler
from streamapp.core.actions.decision import SetStandbys
from streamapp.core.facts.group import GroupDescription, GroupState, StandbySetting, StandbySettingUnread
from streamapp.core.facts.hold_record import Epoch, HoldRecord, RaisedStandbys, RaiseState
from streamapp.core.reasons import Reason
from streamapp.kube.client.kinds import Key
from tests.builders import ago
from tests.support.streams import streams_group

SEEN = RaisedStandbys(before=None, instead_of=0, to=1, at=ago(20), state=RaiseState.SEEN)


@dataclass
class Group:
    """The brokers' side: one setting."""

    setting: StandbySetting | StandbySettingUnread
    is_refused: bool = False
    written: list[int | None] = field(default_factory=list)
    is_classic: bool = False

    async def describe(self) -> Poll:
        streams = None if self.is_classic else replace(streams_group(), standbys=self.setting)
        return Poll(GroupDescription(GroupState.EMPTY, (), streams))

    async def standbys(self) -> StandbySetting | StandbySettingUnread:
        return self.setting

    def close(self) -> None:
        """Nothing to do."""

    async def set_standbys(self, replicas: int | None, instead_of: StandbySetting | None = None) -> None:
        if self.is_refused or instead_of != self.setting:
            raise KafkaStepError("no right, or another value")
        self.written.append(replicas)


def remembering(raised: RaisedStandbys | None) -> Memory:
    """What is known of an application whose last record had that raise."""
    record = None if raised is None else HoldRecord(epoch=Epoch(lease=0, counter=1), standbys=raised)
    memory = Memory("uid")
    memory.follow_record(record)
    return memory


def ended(group: Group, raised: RaisedStandbys | None, leadership: Leadership = ALONE) -> list[int | None]:
    """End an application whose last record had that raise; give what was written to the brokers."""
    application: Any = SimpleNamespace(memory=remembering(raised), watch=SimpleNamespace(group=group))
    nothing: Any = None
    applier = Applier(nothing, nothing, Metrics(), leadership=leadership)
    asyncio.run(applier.leave_group_as_it_was(Key("shop", "counter"), application))
    return group.written


@pytest.mark.guarantee(2)
def test_what_the_operator_set_is_put_back() -> None:
    assert ended(Group(StandbySetting(1, is_set=True)), SEEN) == [None]
    assert ended(Group(StandbySetting(1, is_set=True)), replace(SEEN, before=0)) == [0]
    assert ended(Group(StandbySetting(1, is_set=True), is_classic=True), SEEN) == [None]


class Over(Alone):
    """Another replica leads."""

    def check(self) -> None:
        raise NotLeadingError("Lease", "it is over", "another replica goes on")


@pytest.mark.guarantee(2)
def test_a_process_that_does_not_lead_any_more_puts_nothing_back() -> None:
    group = Group(StandbySetting(1, is_set=True))
    with pytest.raises(NotLeadingError):
        ended(group, SEEN, Over())
    assert group.written == []


@pytest.mark.guarantee(2)
def test_what_another_hand_set_stays_and_so_does_what_nobody_raised() -> None:
    assert ended(Group(StandbySetting(2, is_set=True)), SEEN) == []
    assert ended(Group(StandbySetting(0, is_set=False)), SEEN) == []
    assert ended(Group(StandbySetting(1, is_set=True)), None) == []


@pytest.mark.guarantee(2)
def test_what_was_raised_on_another_kafka_cluster_is_in_the_log(log_lines: list[Any]) -> None:
    group = Group(StandbySetting(1, is_set=True, cluster="present"))
    assert ended(group, replace(SEEN, cluster="former")) == []
    (line,) = log_lines
    assert line["error"] == "they were raised on Kafka cluster former, and these brokers are of present"


@pytest.mark.parametrize(
    "group", [Group(StandbySettingUnread("no answer")), Group(StandbySetting(1, is_set=True), is_refused=True)]
)
def test_what_cannot_be_put_back_is_in_the_log(group: Group, log_lines: list[Any]) -> None:
    assert ended(group, SEEN) == []
    assert [line["event"] for line in log_lines] == ["raised standbys are left"]


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("raised", [None, SEEN])
def test_what_is_to_be_put_back_is_remembered_until_a_pass_has_put_it_back(raised: RaisedStandbys | None) -> None:
    nothing: Any = None
    applications, key = Applications(nothing, nothing, nothing), Key("shop", "counter")
    applications.get(key, "uid").memory.raised_standbys = raised
    applications.drop_deleted(key)
    assert (applications.find(key) is not None) == (raised is not None)
    applications.remove(key)
    assert not applications.contains(key)


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(("uid", "put_back"), [("uid", []), ("another", [None])], ids=["the same", "made anew"])
def test_a_streamapp_that_is_made_anew_finds_the_setting_as_it_was(uid: str, put_back: list[int | None]) -> None:
    """No pass has seen that the former one was gone."""
    key, group, nothing = Key("shop", "counter"), Group(StandbySetting(1, is_set=True)), cast("Any", None)
    applications = Applications(nothing, nothing, nothing)
    application = applications.get(key, "uid")
    application.memory.raised_standbys = SEEN
    application.watch = cast("Any", SimpleNamespace(group=group))
    applications.drop_deleted(key)
    applications.remember_resource(key, {"metadata": {"uid": uid, "resourceVersion": "7"}})

    async def read_replicas(key: Key, *, live: bool) -> OtherInstallation:  # noqa: ARG001 (the gatherer's arguments)
        applications.get(key, uid)
        return OtherInstallation("the pass ends here")

    gatherer, reporter = SimpleNamespace(read_replicas=read_replicas, can_be_told=bool), MagicMock()
    applier = Applier(nothing, nothing, Metrics())
    asyncio.run(Reconciler(cast("Any", gatherer), applier, reporter, applications).reconcile(key))
    assert group.written == put_back


class TakenMeanwhile(Alone):
    """A machine was paused, and its clocks with it: the Lease is over, and only the API server says so."""

    async def confirm(self) -> None:
        raise NotLeadingError("Lease", "it is held by another", "another replica goes on")


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(("leadership", "written"), [(Alone(), [1]), (TakenMeanwhile(), [])], ids=["own", "another's"])
def test_the_brokers_are_asked_for_standbys_only_under_a_lease_that_the_api_server_confirms(
    leadership: Leadership, written: list[int | None]
) -> None:
    group, nothing = Group(StandbySetting(0, is_set=False)), cast("Any", None)
    application = SimpleNamespace(memory=remembering(None), watch=SimpleNamespace(group=group), request=None)

    async def play() -> None:
        raises = RaiseWatch(lambda: False, asyncio.Event().wait)
        gathered: Any = SimpleNamespace(key=Key("shop", "counter"), application=application, raises=raises)
        applier = Applier(nothing, nothing, Metrics(), leadership=leadership)
        with nullcontext() if written else pytest.raises(NotLeadingError):
            await applier.apply(
                gathered,
                (SetStandbys(replicas=1, instead_of=StandbySetting(0, is_set=False), reason=Reason.StandbysRaised),),
            )

    asyncio.run(play())
    assert group.written == written
