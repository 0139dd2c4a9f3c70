"""The next write of a migration, or what it waits for: `next_step(facts, progress)`. Pure.

It depends on the objects and the record on the StreamApp alone, so a run that was interrupted at any point is continued
by the next one. Each stage begins with one request, which changes the spec and the record together, on the version of
the StreamApp that was read:

1. `stop`: 0 desired replicas. The operator stops all pods together. Autoscalers cannot raise the replicas from here on.
2. `switch`: the template, when no pod is left and a newer reading of the brokers shows the group without members.
3. `start`: the former replicas, when the operator has written the template to the StatefulSet. With one request for
   both, pods could start from the former template: the operator makes a raise before everything else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from streamapp.api.http.messages import GroupTold
from streamapp.api.names import MIGRATION
from streamapp.api.v1alpha1.pod_template import mapping
from streamapp.api.v1alpha1.spec import RetentionPolicy
from streamapp.cli.errors import Unread
from streamapp.cli.migration import template
from streamapp.cli.migration.facts import Facts
from streamapp.cli.model.autoscalers import AutoscalersUnknown
from streamapp.cli.model.migration_record import Parked, Protocol, Record, Stage, UnreadableRecord
from streamapp.cli.model.phrases import counted
from streamapp.core.actions.decision import Answer

Json = dict[str, Any]
DISABLED = "Disabled"
"""The `selectPolicy` that keeps a HorizontalPodAutoscaler from scaling up."""
_ABORTS = "kubectl streamapp migrate {name} --abort"
_ABORT = f"return to the former template: {_ABORTS}"


@dataclass(frozen=True, slots=True)
class Change:
    """Lay fields over exactly the version of the StreamApp that was read."""

    patch: Json
    says: str


@dataclass(frozen=True, slots=True)
class PatchAutoscaler:
    """Lay fields over exactly this version of a HorizontalPodAutoscaler."""

    body: Json
    patch: Json
    says: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again."""

    stage: Stage
    what: str
    """What is missing."""


@dataclass(frozen=True, slots=True)
class Stop:
    """It cannot go on by itself."""

    why: str
    next_step: str


@dataclass(frozen=True, slots=True)
class Done:
    """The record is gone."""


Step = Change | PatchAutoscaler | Wait | Stop | Done


@dataclass(frozen=True, slots=True)
class Progress:
    """What one run remembers between its looks."""

    record: Record | None = None
    """As the run last read it; the result is told from it when it is gone."""
    gone_at: datetime | None = None
    """By the operator's clock, when it first said that no pod is left."""
    converged_at: datetime | None = None
    stage_from: tuple[datetime, datetime] | None = None
    """Of the stage: its date on record, and that date or the operator's at the first look, whichever is earlier."""

    def dated(self, record: Record) -> Record:
        """The record with a date that is not after the operator's: a run that never heard it wrote another clock's."""
        known = self.stage_from
        return record if known is None or known[0] != record.stage_at else replace(record, stage_at=known[1])

    def after(self, facts: Facts) -> "Progress":
        """With what a look has shown."""
        record = facts.record if isinstance(facts.record, Record) else self.record
        told = facts.group.told_at if isinstance(facts.group, GroupTold) else None
        gone = self.gone_at if facts.has_stopped else None
        since = self.stage_from
        if record is not None and told is not None and (since is None or since[0] != record.stage_at):
            since = record.stage_at, min(record.stage_at, told)
        made = Progress(
            record=record,
            gone_at=(gone or told) if facts.has_stopped else None,
            converged_at=self.converged_at,
            stage_from=since,
        )
        return replace(made, converged_at=_converged_at(facts, made) or self.converged_at)


def began(facts: Facts, to: Protocol, patch: Json, undo: Json, parked: tuple[Parked, ...]) -> Change:
    """The first write: the record, and 0 desired replicas."""
    record = Record(
        to=to,
        stage=Stage.STOP,
        replicas=facts.desired,
        allow_zero=mapping(facts.resource["spec"].get("scaleDown")).get("allowZero"),
        patch=patch,
        undo=undo,
        autoscalers=parked,
        began_at=facts.now,
        stage_at=facts.now,
    )
    return _stop(record)


def aborted(facts: Facts, record: Record) -> Change | Stop | None:
    """The write that turns a migration around; None if it goes back already.

    Stop: another writer changed what would be taken back. No pod is stopped for a way back that ends there.
    """
    now = facts.now
    if record.is_abort:
        return _switched_again(facts, record) if record.stage is Stage.SWITCH else None
    if record.stage is Stage.STOP:
        # The template was never written: the pods that stopped start again as they were.
        return _start(record.turned(Stage.START, now))
    is_down = record.stage is Stage.SWITCH and facts.desired == 0
    back = record.turned(Stage.SWITCH if is_down else Stage.STOP, now)
    if (way := _way_back(facts, back)).conflicts:
        return _not_taken_back(facts, way)
    return _switch(back, facts) if is_down else _stop(back)


def _switched_again(facts: Facts, record: Record) -> Change | None:
    """Take back what another writer wrote again after an abort had taken it back; only the user says so.

    The StatefulSet can have any of the three templates by now, so no other hash is waited for.
    """
    if _way_back(facts, record).template == facts.template:
        return None
    return _switch(replace(record, template_hash=facts.template_hash), facts)


def next_step(facts: Facts, progress: Progress) -> Step:
    """The next write, or what is waited for."""
    record = facts.record
    if record is None:
        return Done()
    if isinstance(record, UnreadableRecord):
        return Stop(f"its record cannot be read: {record.why}", f"remove the annotation {MIGRATION}")
    if facts.streamapp is None or facts.streamapp.spec.paused or facts.streamapp.spec.dry_run:
        return Stop("the spec is invalid, paused or a dry run, so the operator changes nothing", "correct that first")
    record = progress.dated(record)
    match record.stage:
        case Stage.STOP:
            return _while_stopping(facts, record, progress)
        case Stage.SWITCH:
            return _while_switching(facts, record)
        case Stage.START:
            return _while_starting(facts, record)


def _while_stopping(facts: Facts, record: Record, progress: Progress) -> Step:
    if (obstacle := _before_the_switch(facts, record)) is not None:
        return obstacle
    if facts.desired != 0:
        return _stop(record)  # another writer raised the replicas
    parked = _park(facts, record)
    if parked is not None:
        return parked
    if not facts.has_stopped:
        return Wait(Stage.STOP, _pods_left(facts))
    at = progress.gone_at
    if at is None or not facts.is_empty_since(at):
        return Wait(Stage.STOP, _members_left(facts))
    stopped = facts.last_stop
    is_of_this = stopped is not None and stopped >= record.began_at - timedelta(minutes=1)
    former = record.stopped_at
    switched = record.at(Stage.SWITCH, facts.now, stopped_at=former or (stopped if is_of_this else facts.now))
    return _switch(switched, facts)


def _before_the_switch(facts: Facts, record: Record) -> Stop | Wait | None:
    """What another writer did that the next write would undo or make worse."""
    if not template.has(facts.template, record.undo) and not record.is_abort:
        why = "another writer changed the pod template after the migration began, and the switch would undo that change"
        return Stop(why, f"start the pods as they are, then migrate anew: {_ABORTS.format(name=facts.name)}")
    if record.is_abort and (way := _way_back(facts, record)).conflicts:
        return _not_taken_back(facts, way)
    if deletes_volumes(facts):
        why = "`state.retention.whenScaled` is Delete now, so the volumes would go with the pods"
        return Stop(why, "set it to Retain, then run the command again")
    return _unread(facts, record)


def _while_switching(facts: Facts, record: Record) -> Step:
    if record.is_abort and (way := _way_back(facts, record)).conflicts:
        return _not_taken_back(facts, way)
    if not _has_switched(facts, record):
        why = "another writer changed the pod template after it was written"
        return Stop(why, f"find out who (a GitOps tool?), then {_ABORT.format(name=facts.name)}")
    is_written = not record.template_hash or facts.template_hash != record.template_hash
    if not facts.view.is_of_this_spec or not is_written:
        return Wait(Stage.SWITCH, "the operator writes the template")
    return _start(record.at(Stage.START, facts.now))


def _while_starting(facts: Facts, record: Record) -> Step:
    protocol = facts.protocol
    has_members = isinstance(facts.group, GroupTold) and facts.group.members > 0
    is_new = isinstance(facts.group, GroupTold) and facts.group.as_of > record.stage_at
    if is_new and has_members and protocol is record.to.other:
        why = f"the pods joined with the {record.to.other.value} protocol: the new template does not switch it"
        return Stop(why, "correct the template" if record.is_abort else _ABORT.format(name=facts.name))
    if facts.desired == 0:
        return Stop("another writer set 0 desired replicas", f"kubectl streamapp scale {facts.name} {record.replicas}")
    if not _runs(facts, record):
        return Wait(Stage.START, _not_running(facts))
    if (unread := _unread(facts, record)) is not None:
        return unread
    for body in () if not isinstance(facts.autoscalers, tuple) else facts.autoscalers:
        former = next((one for one in record.autoscalers if one.name == body["metadata"]["name"]), None)
        if former is not None and _select_policy(body) == DISABLED and former.policy != DISABLED:
            return PatchAutoscaler(body, _select(former.policy), f"lets HorizontalPodAutoscaler {former.name} scale up")
    return Change({"metadata": {"annotations": {MIGRATION: None}}}, "removes the record: the migration is over")


def _stop(record: Record) -> Change:
    spec = {"replicas": 0, "scaleDown": {"allowZero": True}}
    return Change({"metadata": _noted(record), "spec": spec}, "sets 0 desired replicas; all pods stop together")


def _switch(record: Record, facts: Facts) -> Change:
    """Write the template; of the StatefulSet another hash is waited for, but not if it has the wanted one already."""
    patch = template.difference(facts.template, _way_back(facts, record).template) if record.is_abort else record.patch
    is_there_still = record.stage is Stage.SWITCH and record.is_abort and facts.template_hash == record.template_hash
    awaited = "" if is_there_still or not patch else facts.template_hash
    noted = _noted(record.at(Stage.SWITCH, facts.now, template_hash=awaited))
    return Change({"metadata": noted, "spec": {"template": patch}}, "writes the template")


def _has_switched(facts: Facts, record: Record) -> bool:
    if record.is_abort:
        return _way_back(facts, record).template == facts.template
    return template.has(facts.template, record.patch)


def _way_back(facts: Facts, record: Record) -> template.TakenBack:
    """The present template without what the switch wrote, for the record of an abort: `undo` is what was written."""
    return template.taken_back(facts.template, written=record.undo, former=record.patch)


def _not_taken_back(facts: Facts, way: template.TakenBack) -> Stop:
    where = ", ".join(f"spec.template.{one}" for one in way.conflicts)
    why = f"another writer changed what the migration wrote, and an abort would overwrite that change: {where}"
    step = f"give it its former value, or the one that the migration wrote, then run {_ABORTS.format(name=facts.name)}"
    return Stop(why, step)


def _start(record: Record) -> Change:
    spec = {"replicas": record.replicas, "scaleDown": {"allowZero": record.allow_zero}}
    return Change({"metadata": _noted(record), "spec": spec}, f"sets {record.replicas} desired replicas")


def _noted(record: Record) -> Json:
    return {"annotations": {MIGRATION: record.text}}


def deletes_volumes(facts: Facts) -> bool:
    """Whether Kubernetes deletes the claim of each pod that stops."""
    state = None if facts.streamapp is None else facts.streamapp.spec.state
    return state is not None and state.retention.when_scaled is RetentionPolicy.DELETE


def _unread(facts: Facts, record: Record) -> Wait | None:
    """What is waited for where autoscalers of the record cannot be read: none may keep the settings of a migration."""
    if isinstance(facts.autoscalers, AutoscalersUnknown) and record.autoscalers:
        names = ", ".join(one.name for one in record.autoscalers)
        return Wait(record.stage, f"HorizontalPodAutoscaler {names} cannot be read: {facts.autoscalers.why}")
    return None


def _park(facts: Facts, record: Record) -> PatchAutoscaler | None:
    names = {one.name for one in record.autoscalers}
    for body in () if not isinstance(facts.autoscalers, tuple) else facts.autoscalers:
        if body["metadata"]["name"] in names and _select_policy(body) != DISABLED:
            name = body["metadata"]["name"]
            return PatchAutoscaler(body, _select(DISABLED), f"keeps HorizontalPodAutoscaler {name} from scaling up")
    return None


def parked_of(body: Mapping[str, Any]) -> Parked:
    """What the record keeps of an autoscaler."""
    return Parked(str(body["metadata"]["name"]), _select_policy(body))


def _select_policy(body: Mapping[str, Any]) -> str | None:
    behavior = mapping(mapping(body.get("spec")).get("behavior"))
    found = mapping(behavior.get("scaleUp")).get("selectPolicy")
    return None if found is None else str(found)


def _select(policy: str | None) -> Json:
    return {"spec": {"behavior": {"scaleUp": {"selectPolicy": policy}}}}


def _runs(facts: Facts, record: Record) -> bool:
    """Every pod is ready, and every task runs, as far as the operator can say it with this protocol."""
    view, status, group = facts.view, facts.view.status, facts.group
    counts = (status.stateful_set_replicas, status.replicas, status.ready_replicas)
    if not view.is_of_this_spec or counts != (facts.desired,) * 3 or not isinstance(group, GroupTold):
        return False
    if facts.protocol is not record.to or group.as_of <= record.stage_at:
        return False
    if view.answer("Converged") is Answer.TRUE:
        return True
    has_agent = facts.streamapp is not None and facts.streamapp.spec.agent.enabled
    return not has_agent and record.to is Protocol.STREAMS and group.settled and group.members >= facts.desired


def _converged_at(facts: Facts, progress: Progress) -> datetime | None:
    if not isinstance(facts.record, Record):
        return None
    record = progress.dated(facts.record)
    if record.stage is not Stage.START or not _runs(facts, record):
        return None
    condition = facts.view.condition("Converged")
    if condition is None or condition.status is not Answer.TRUE or condition.last_transition_time < record.stage_at:
        return facts.now
    return condition.last_transition_time


def _pods_left(facts: Facts) -> str:
    status = facts.view.status
    held = facts.view.condition("ScaleDownHeld")
    why = f", {held.reason}" if held is not None and held.status is Answer.TRUE else ""
    return f"{counted(status.replicas, 'pod')} left{why}"


def _members_left(facts: Facts) -> str:
    group = facts.group
    if isinstance(group, Unread):
        return f"the group is not known: {group.why}"
    if group.doubt:
        return f"the group cannot be read: {group.doubt}"
    if group.members:
        return f"no pod left, and the brokers show {counted(group.members, 'member')}"
    return "no pod left, and the brokers are asked whether the group is empty"


def _not_running(facts: Facts) -> str:
    status, group = facts.view.status, facts.group
    told = facts.view.condition("Converged")
    state = "group unknown" if isinstance(group, Unread) else f"group {group.protocol or 'none'} {group.state or ''}"
    faults = [f"pod {one.ordinal}: {one.fault}" for one in status.members if one.fault is not None]
    why = f", {told.reason}" if told is not None and told.status is not Answer.TRUE else ""
    return f"{status.ready_replicas} of {facts.desired} pods ready, {state.strip()}{why}" + (
        f"; {faults[0]}" if faults else ""
    )
