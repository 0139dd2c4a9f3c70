"""Reads an agent's report (`agent/protocol/report.schema.json`): what the one instance of our application says.

Called by `streamapp.agents`. A report that breaks the schema raises `UndecodableError`; one that is sound and yet of no
use to us, because it is another pod's or not of one instance of ours, raises `NotOurReportError`. Nothing is guessed.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import ValidationError

from streamapp.core.facts.agent_reports import (
    AgentReport,
    AnnouncementAck,
    AsideKind,
    AssignorInactive,
    AssignorRun,
    ClientSettings,
    ContainerMemory,
    HeartbeatCap,
    LocalTask,
    TaskTimes,
)
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId
from streamapp.wire.agent_fields import (
    AnnouncementFields,
    AsideFields,
    EpochFields,
    HeartbeatFields,
    InstanceFields,
    MemoryFields,
    ReportFields,
    RoundFields,
    TaskFields,
    TaskTimesFields,
    What,
)
from streamapp.wire.errors import UndecodableError

MOST_BYTES = 1024 * 1024
"""Of a report: some 700 tasks with ten stores each, beside a topology of the largest size that agents send."""

_WHAT = "agent's report"
_VERSION = 1
_PROCESS_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_LONGEST_SHOWN = 200


class NotOurReportError(Exception):
    """A sound report that says nothing about our application's one instance in this pod; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Whose report it should be."""

    ordinal: Ordinal
    pod_uid: str
    application_id: str
    asked_at: datetime
    """When the request was sent, aware of its zone: every age in the report is counted back from it."""
    answered_at: datetime | None = None
    """When the answer was in; None: at once."""


@dataclass(frozen=True, slots=True)
class ReadReport:
    """A report, read."""

    report: AgentReport
    topology: str | None
    """The text of `Topology#describe()`; None where the agent does not know it."""


def read_report(body: bytes, expected: Expected) -> ReadReport:
    """Read the JSON of a report.

    Raises:
        UndecodableError: It is no report: too long, no JSON, or against the schema.
        NotOurReportError: It is another pod's, or not of exactly one instance of the application.
    """
    if len(body) > MOST_BYTES:
        raise _undecodable("the whole", f"it has {len(body)} bytes, and at most {MOST_BYTES} are read")
    try:
        fields = ReportFields.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _undecodable(_place(first["loc"]), first["msg"]) from None
    if fields.agent.pod_uid != expected.pod_uid:
        claim = (
            "does not say which pod it is of" if fields.agent.pod_uid is None else f"is of pod {fields.agent.pod_uid}"
        )
        raise NotOurReportError(f"the report {claim}, and pod {expected.pod_uid} was asked")
    number, instance = _ours(fields, expected.application_id)
    return ReadReport(_report(fields, instance, f"instances[{number}]", expected), instance.topology)


def _ours(fields: ReportFields, application_id: str) -> tuple[int, InstanceFields]:
    matches = [(number, one) for number, one in enumerate(fields.instances) if one.application_id == application_id]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise NotOurReportError(f"{len(matches)} Kafka Streams instances of {application_id} run in one JVM")
    others = sorted({one.application_id for one in fields.instances})
    there = f"only of {', '.join(others)}" if others else "nor of any other"
    why = "".join(f"; the agent steps aside: {aside.why}" for aside in fields.asides)
    message = f"the agent knows no Kafka Streams instance of {application_id}, {there}{why}"
    raise NotOurReportError(message[: 5 * _LONGEST_SHOWN])


def _report(fields: ReportFields, instance: InstanceFields, where: str, expected: Expected) -> AgentReport:
    assignor = instance.assignor
    aside = _aside((*instance.asides, *fields.asides))
    last_round = None if assignor is None else assignor.last_round
    return AgentReport(
        ordinal=expected.ordinal,
        pod_uid=expected.pod_uid,
        incarnation=fields.agent.incarnation,
        sequence=fields.agent.sequence,
        as_of=expected.asked_at - timedelta(milliseconds=fields.agent.age_millis),
        heard_at=expected.answered_at,
        process_id=None if instance.process_id is None else _process_id(instance.process_id, f"{where}.processId"),
        tasks=None if instance.tasks is None else _tasks(instance.tasks, f"{where}.tasks"),
        heard=_heard(fields.announcement),
        # An agent that says both has contradicted itself; a caller that waits for the assignor waits on.
        is_ours=assignor is not None and assignor.is_ours and aside is None,
        aside=aside,
        recovery_lag=instance.acceptable_recovery_lag,
        standby_replicas=instance.standby_replicas,
        round=None if last_round is None else _round(last_round, expected.asked_at),
        client_state=instance.client_state,
        settings=_settings(instance),
        state_bytes=instance.state_bytes,
        free_bytes=instance.free_bytes,
        memory=_memory(fields.memory),
        heartbeat_cap=_cap(fields.heartbeat),
        file_system=instance.file_system or None,
        task_times=tuple(_times(one, f"{where}.taskTimes", expected.asked_at) for one in instance.task_times or ()),
        parts=_parts(fields, instance, "" if last_round is None else last_round.fell_back),
    )


def _parts(fields: ReportFields, instance: InstanceFields, fell_back: str) -> int:
    """How much of a report is kept; the topology is kept once for the application."""
    tasks, named = instance.tasks or (), fields.announcement.process_ids or ()
    texts = (
        *(fell_back, fields.agent.incarnation, instance.client_state, instance.state_directory or ""),
        *(instance.kafka_version or "", instance.file_system or ""),
        *(aside.why for aside in (*instance.asides, *fields.asides)),
        *(store.store for task in tasks for store in task.stores or ()),
    )
    stores = sum(len(task.stores or ()) for task in tasks)
    return len(tasks) + stores + len(instance.task_times or ()) + len(named) + sum(map(len, texts)) // 100


def _settings(fields: InstanceFields) -> ClientSettings:
    return ClientSettings(
        heartbeat=_millis(fields.heartbeat_millis),
        session_timeout=_millis(fields.session_timeout_millis),
        is_static=fields.is_static,
        leaves_on_close=fields.leaves_on_close,
        state_directory=fields.state_directory,
        cleaned_tasks=fields.cleaned_tasks,
        kafka_version=fields.kafka_version,
    )


def _millis(fields: int | None) -> timedelta | None:
    return None if fields is None else timedelta(milliseconds=fields)


def _aside(asides: tuple[AsideFields, ...]) -> AssignorInactive | None:
    """Why the assignor is not at work; what the agent does not do beside that changes no decision."""
    assignor_aside = next((aside for aside in asides if aside.what is What.ASSIGNOR), None)
    return (
        None
        if assignor_aside is None
        else AssignorInactive(assignor_aside.kind or AsideKind.FAILED, assignor_aside.why)
    )


def _heard(fields: AnnouncementFields) -> AnnouncementAck:
    return AnnouncementAck(
        state=fields.state,
        epoch=_epoch(fields.epoch),
        process_ids=frozenset(
            _process_id(text, f"announcement.processIds[{number}]")
            for number, text in enumerate(fields.process_ids or ())
        ),
        rebalance=fields.rebalance,
        expires_in=None if fields.expires_in_millis is None else timedelta(milliseconds=fields.expires_in_millis),
    )


def _cap(fields: HeartbeatFields | None) -> HeartbeatCap | None:
    if fields is None:
        return None
    return HeartbeatCap(interval=_millis(fields.cap_millis), expires_in=_millis(fields.expires_in_millis))


def _memory(fields: MemoryFields | None) -> ContainerMemory | None:
    if fields is None:
        return None
    return ContainerMemory(used=fields.used_bytes, heap=fields.heap_bytes, limit=fields.limit_bytes)


def _round(fields: RoundFields, asked_at: datetime) -> AssignorRun:
    made_at, warm_in = asked_at - timedelta(milliseconds=fields.age_millis), _millis(fields.warm_in_millis)
    return AssignorRun(
        made_at=made_at,
        state=fields.announcement,
        epoch=_epoch(fields.epoch),
        moved=fields.moved,
        learning=fields.learning,
        follow_up_is_watch=fields.follow_up_for == "expiry",
        warm_at=None if warm_in is None else made_at + warm_in,
        fell_back=fields.fell_back,
    )


def _epoch(fields: EpochFields | None) -> Epoch | None:
    return None if fields is None else Epoch(lease=fields.lease, counter=fields.counter)


def _tasks(fields: list[TaskFields], where: str) -> tuple[LocalTask, ...]:
    tasks = tuple(_task(one, f"{where}[{number}]") for number, one in enumerate(fields))
    ids = set[TaskId]()
    for task in tasks:
        if task.id in ids:
            raise _undecodable(where, f"task {task.id} is there twice, so that it is not known which of the two is now")
        ids.add(task.id)
    return tasks


def _task(fields: TaskFields, where: str) -> LocalTask:
    try:
        task = TaskId.parse(fields.id)
    except ValueError as error:
        raise _undecodable(f"{where}.id", str(error)[:_LONGEST_SHOWN]) from None
    positions: dict[str, int] = {}
    for number, store in enumerate(fields.stores or ()):
        place = f"{where}.stores[{number}]"
        if store.partition != task.partition:
            raise _undecodable(f"{place}.partition", f"it is {store.partition}, and task {task} has {task.partition}")
        if store.store in positions:
            raise _undecodable(f"{place}.store", f"store {store.store[:_LONGEST_SHOWN]} is there twice")
        positions[store.store] = store.position
    is_active = fields.role == "active"
    return LocalTask(
        id=task,
        is_active=is_active,
        state=fields.state if is_active else None,
        positions=positions,
        state_bytes=fields.state_bytes,
    )


def _times(fields: TaskTimesFields, where: str, asked_at: datetime) -> TaskTimes:
    def before(millis: int | None) -> datetime | None:
        return None if millis is None else asked_at - timedelta(milliseconds=millis)

    try:
        task = TaskId.parse(fields.id)
    except ValueError as error:
        raise _undecodable(f"{where}.id", str(error)[:_LONGEST_SHOWN]) from None
    return TaskTimes(task, before(fields.started_ago_millis), before(fields.stopped_ago_millis))


def _process_id(text: str, where: str) -> ProcessId:
    if _PROCESS_ID.fullmatch(text) is None:
        raise _undecodable(where, f"{text[:_LONGEST_SHOWN]!r} is no process ID")
    return ProcessId.parse(text)


def _place(location: tuple[int | str, ...]) -> str:
    parts = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return parts.removeprefix(".") or "the whole"


def _undecodable(where: str, why: str) -> UndecodableError:
    return UndecodableError(what=_WHAT, where=where, version=_VERSION, why=why)
