"""Fences the hold record: after that a removal which a former process had prepared finds another version and fails.

Called by `reconcile.apply` in each pass. A former process that lives on reads the record, too, and finds the number of
the later one there. Where it has a Lease it asks for that; without one it ends, since nothing else would stop it.
"""

from dataclasses import replace
from datetime import datetime
from functools import partial

from streamapp.controller.leader.leadership import Leadership
from streamapp.controller.reconcile.gather import ReplicaFacts
from streamapp.core.actions.decision import Fence
from streamapp.core.facts.hold_record import NO_EPOCH, HoldRecord, RecordUnreadable
from streamapp.kube.client.client import KubeClient
from streamapp.kube.objects import statefulsets


async def fence(client: KubeClient, leadership: Leadership, facts: ReplicaFacts, lease: int, now: datetime) -> bool:
    """Write our own epoch into a hold record that another process left; return whether that was done.

    A record that cannot be read stays as it is, with the epoch beside it: an operator of another version may read it.
    NotLeadingError if a later process has written one since.
    """
    memory, statefulset = facts.application.memory, facts.statefulset
    record = None if statefulset is None or not statefulset.is_ours else statefulset.record
    number = record.epoch.lease if isinstance(record, HoldRecord) else 0
    if memory.is_fenced and number > max(lease, memory.fenced_lease):
        await leadership.give_way(number)
        memory.fenced_lease = number
    is_readable_again = memory.is_record_unread and facts.is_live and isinstance(record, HoldRecord)
    if memory.is_fenced and not is_readable_again:
        return False
    if statefulset is None or (isinstance(record, RecordUnreadable) and statefulset.is_half_made):
        record = None  # nothing can be removed yet, and the API server refuses a part of it
    if statefulset is not None and record is not None:
        version = Fence(statefulset.uid, statefulset.resource_version)
        write = partial(statefulsets.grant, client, facts.key, version, statefulset.replicas)
        if isinstance(record, HoldRecord):
            found = record.dated_until(now).found_at(facts.app.generation)
            await write(replace(found, epoch=record.epoch.next(lease, now)))
        else:
            stands = statefulsets.record_as_it_stands(facts.live_statefulset or {})
            await write(stands, epoch=NO_EPOCH.next(lease, now))
    memory.note_fence(max(lease, number))
    memory.is_record_unread = isinstance(record, RecordUnreadable)
    return record is not None
