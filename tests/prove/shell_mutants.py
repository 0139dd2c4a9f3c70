"""What is known of the product without each safeguard of its shell; `shell_safeguards.py` finds them."""

from collections.abc import Mapping

from tests.prove.play import play
from tests.prove.shell_safeguards import every_safeguard, without
from tests.prove.story import Story

CAUGHT: Mapping[str, str] = {
    "statefulsets.grant: fence 1": "down-4-3 seed=1 write:18:freeze:8",
    "apply.Applier._grant: ask _freshness 1": "down-4-3 seed=1 kafka:7:api-slow:4",
    "apply.Applier._freshness: raise ConflictError 2": "down-4-3 seed=1 kafka:7:api-slow:4",
}
"""Safeguards, each with a story that fails without it."""
NOT_SHOWN = frozenset(
    {
        "apply.Applier.apply: ask is_received 1",
        "apply.Applier.apply: raise RaisePendingError 1",
        "apply.Applier._ask: raise ConflictError 1",
        "apply.Applier._ask: raise RaisePendingError 1",
        "apply.Applier.raise_replicas: ask _still_desired 1",
        "apply.Applier._observed: call check 1",
        "apply.Applier.leave_group_as_it_was: call check 1",
        "apply.Applier._grant: call _check_again 1",
        "apply.Applier._open_budget: call _check_again 1",
        "apply.Applier._open_budget: ask _freshness 1",
        "apply.Applier._record_process_id: raise ConflictError 1",
        "apply.Applier._restart: raise ConflictError 1",
        "apply.Applier._restart: call _check_again 1",
        "apply.Applier._restart: ask _freshness 1",
        "apply.Applier._check_again: call _check_agents 1",
        "apply.Applier._check_again: raise ConflictError 1",
        "apply.Applier._check_again: raise ConflictError 2",
        "apply.Applier._check_again: raise ConflictError 3",
        "apply.Applier._check_again: call confirm 1",
        "apply.Applier._check_agents: raise RaisePendingError 1",
        "apply.Applier._check_agents: raise ConflictError 1",
        "apply.Applier._freshness: ask is_received 1",
        "apply.Applier._freshness: raise ConflictError 1",
        "apply._still_desired: raise ConflictError 1",
        "owned.OwnedObjects.open_budget: fence 1",
        "reconciler.Reconciler._fence: ask fence_hold_record 1",
        "reconciler.Reconciler._pass: ask _must_be_live 1",
        "reconciler.Reconciler._pass: ask fence_hold_record 1",
        "reconciler.Reconciler._gather: raise RaisePendingError 1",
        "reconciler.Reconciler._rest: ask _is_all_done 1",
        "election.Elector.check: ask leads 1",
        "election.Elector.check: call _lose 1",
        "election.Elector.confirm: call check 1",
        "election.Elector.confirm: call _verify_own 1",
        "election.Elector.look: ask leads 1",
        "election.Elector.keep: call check 1",
        "election.Elector.renew: call _verify_own 1",
        "election.Elector.renew: call _verify_own 2",
        "election.Elector._write_own: raise ConflictError 1",
        "election.Elector._verify_own: call _lose 1",
        "election.Elector._lose: raise NotLeadingError 1",
        "thread_loop.RemoteLeadership.leads: ask leads 1",
        "thread_loop.RemoteLeadership.check: call check 1",
        "client.KubeClient.watch: fence 1",
        "client.KubeClient.delete: fence 1",
        "client.KubeClient.end_pod: fence 1",
        "client.KubeClient._checked: may_write 1",
        "claims.record_process_id: raise ConflictError 1",
        "claims.record_process_id: fence 1",
        "events.publish: fence 1",
        "leases.write: fence 1",
        "leases.write: raise ConflictError 1",
        "owned_objects.apply_service: call _refuse_foreign 1",
        "owned_objects.apply_budget: call _refuse_foreign 1",
        "owned_objects._refuse_foreign: raise InvalidError 1",
        "pods.restart: raise ConflictError 1",
        "statefulsets._fenced: fence 1",
    }
)
"""Safeguards of which no failing story is known yet: the sweep's zero says nothing of them."""


def is_caught(name: str) -> bool:
    """Whether its story, whose scene the sound product sets up, fails without the safeguard."""
    story = Story.parse(CAUGHT[name])
    play(Story(story.scene, story.seed))
    with without(*(one for one in every_safeguard() if str(one) == name)):
        return bool(play(story).wrongs)
