"""Puts the standbys back that the operator raised in groups of the streams protocol, by the hold records.

Each record says first that they are on their way back. An operator that is installed later then takes the old value for
its own doing and not for another hand's, so the hold goes on where it was.
"""

import asyncio
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from streamapp.api.validation.parse import InvalidStreamApp, StreamApp, parse
from streamapp.controller.apps.apps import ClusterAccess
from streamapp.controller.apps.client_secrets import read_client_properties
from streamapp.controller.apps.kafka_group import connect
from streamapp.controller.apps.standbys_return import put_back
from streamapp.controller.ports import ApplicationGroup
from streamapp.controller.settings import Settings
from streamapp.controller.uninstall.installation import made_by_us
from streamapp.core.actions.decision import Fence
from streamapp.core.facts.group import GroupDescription, GroupState, GroupUnreadable
from streamapp.core.facts.hold_record import HoldRecord, RaisedStandbys, RaiseState
from streamapp.kafka.connection.allowed_brokers import AllowedBrokers
from streamapp.kube.client.client import Json, KubeClient
from streamapp.kube.client.errors import KubeError
from streamapp.kube.client.kinds import PODS, STATEFUL_SETS, STREAM_APPS, Key
from streamapp.kube.objects import from_json, statefulsets

PATIENCE_SECONDS = 30.0
"""For pods on their way out: without these standbys, brokers would move their tasks to pods without state."""
LOOK_SECONDS = 1.0
"""Between two looks at them."""


@dataclass(frozen=True, slots=True)
class RecordedRaise:
    """A StatefulSet whose record has a raise."""

    live: Json
    record: HoldRecord
    raised: RaisedStandbys

    @property
    def key(self) -> Key:
        """Its name, and that of its StreamApp."""
        metadata = self.live["metadata"]
        return Key(metadata["namespace"], metadata["name"])


async def statefulsets_with_raise(client: KubeClient, settings: Settings) -> list[RecordedRaise]:
    """List the StatefulSets of this installation whose record has a raise that another hand has not replaced."""
    found = map(_recorded_raise, await made_by_us(client, settings, STATEFUL_SETS))
    return [one for one in found if one is not None and one.raised.state is not RaiseState.FOREIGN]


async def put_standbys_back(client: KubeClient, settings: Settings, lease: int) -> bool:
    """Put all of them back, each for itself; whether none that the operator raised is left."""
    found = await statefulsets_with_raise(client, settings)
    reasons = await asyncio.gather(*(_put_back(client, settings, one, lease) for one in found))
    for one, why in zip(found, reasons, strict=True):
        before = "the brokers' default" if one.raised.before is None else str(one.raised.before)
        if why:
            sys.stderr.write(
                f"The standbys of {one.key} may stay at {one.raised.to}, and were {before}: {why}. Put them back with "
                f"kafka-configs.sh as docs/streams-protocol.md says, and uninstall with --no-hooks.\n"
            )
        else:
            sys.stdout.write(f"The standbys of {one.key} are as they were: {before}.\n")
    return not any(reasons)


def _recorded_raise(live: Json) -> RecordedRaise | None:
    record = from_json.hold_record(live["metadata"])
    if not isinstance(record, HoldRecord) or record.standbys is None:
        return None
    return RecordedRaise(live, record, record.standbys)


async def _put_back(client: KubeClient, settings: Settings, one: RecordedRaise, lease: int) -> str:
    """Put one back; give why that was not possible, empty if it was."""
    try:
        streamapp = parse(await client.get(STREAM_APPS, one.key.namespace, one.key.name))
        if isinstance(streamapp, InvalidStreamApp):
            return "its StreamApp is invalid"
        group = await _group_of(client, settings, streamapp)
        try:
            why = await _until_nobody_leaves(client, one, group)
            if why:
                return why
            await _record_return(client, one, lease)
            return await put_back(group, one.raised)
        finally:
            group.close()
    except KubeError as error:
        return str(error)


async def _group_of(client: KubeClient, settings: Settings, streamapp: StreamApp) -> ApplicationGroup:
    found = await read_client_properties(client, streamapp.metadata.namespace, streamapp.spec.kafka, {})
    access = ClusterAccess.of(streamapp, found, streamapp.spec.topology)
    return connect(access, settings.kafka_deadline_seconds, allowed=AllowedBrokers(settings.allowed_brokers))


async def _until_nobody_leaves(client: KubeClient, one: RecordedRaise, group: ApplicationGroup) -> str:
    """Wait until no pod and no member is on its way out; give who is after `PATIENCE_SECONDS`."""
    why = ""
    for _ in range(round(PATIENCE_SECONDS / LOOK_SECONDS)):
        pods = await client.list(PODS, one.key.namespace, one.key.selector)
        why = _who_leaves(one.live["spec"]["replicas"], pods, (await group.describe()).group)
        if not why:
            return ""
        await asyncio.sleep(LOOK_SECONDS)
    return why


def _who_leaves(replicas: int, pods: list[Json], group: GroupDescription | GroupUnreadable) -> str:
    if isinstance(group, GroupUnreadable):
        return group.detail
    if any(pod["metadata"].get("deletionTimestamp") for pod in pods) or len(pods) > replicas:
        return "pods are on their way out"
    processes = {member.process_id for member in group.members}
    if len(processes) > sum(any(from_json.running_containers(pod)) for pod in pods):
        return "members of pods that are gone are in the group"
    if group.state is not GroupState.EMPTY and (group.state is not GroupState.STABLE or group.unsettled):
        return group.unsettled or f"the group is {group.state.value}"
    return ""


async def _record_return(client: KubeClient, one: RecordedRaise, lease: int) -> None:
    """Write that the old value is on its way; ConflictError if the StatefulSet is another one by now."""
    now, metadata = datetime.now(UTC), one.live["metadata"]
    returning = replace(one.raised, state=RaiseState.RETURNING, at=now)
    record = replace(one.record.dated_until(now), epoch=one.record.epoch.next(lease, now), standbys=returning)
    fence = Fence(metadata["uid"], metadata["resourceVersion"])
    await statefulsets.grant(client, one.key, fence, one.live["spec"]["replicas"], record)
