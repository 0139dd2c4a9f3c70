"""From the core's values to the operator's answers, and what a pod template says, for an examination.

Called by the controller, and for the template by the command line. Pure.
"""

from collections.abc import Mapping
from datetime import datetime

from streamapp.api.http.messages import (
    Findings,
    FindingTold,
    GroupTold,
    Process,
    SpeedsTold,
    Task,
    TaskCopy,
    TaskOwner,
    Tasks,
    Volume,
)
from streamapp.api.http.streams import streams_row_from, streams_told
from streamapp.api.v1alpha1.pod_template import mapping
from streamapp.api.validation.parse import InvalidStreamApp, StreamApp
from streamapp.core.doctor.diagnoses import Finding
from streamapp.core.doctor.examine import Examination
from streamapp.core.doctor.subject import TemplateFacts
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.group import (
    GroupDescription,
    GroupReading,
    GroupState,
    StandbySetting,
    StreamsGroup,
    StreamsSupport,
)
from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId
from streamapp.core.facts.snapshot import Speeds
from streamapp.core.status.processes import ProcessRow
from streamapp.core.status.task_table import Activity, CopySeen, Owner, Role, TaskRow, TaskTable
from streamapp.core.status.volumes import VolumeRow


def template_facts(found: StreamApp | InvalidStreamApp) -> TemplateFacts | None:
    """What the StreamApp says about its pods; None where its spec cannot be read."""
    if not isinstance(found, StreamApp):
        return None
    state, pod = found.spec.state, found.spec.template["spec"]
    grace = pod.get("terminationGracePeriodSeconds")
    return TemplateFacts(
        grace_seconds=grace if isinstance(grace, int) and not isinstance(grace, bool) else None,
        has_readiness_probe=bool(mapping(found.spec.application_container.get("readinessProbe"))),
        mount_path="" if state is None else state.mount_path,
        state_directory="" if state is None else state.directory,
    )


def tasks_told(namespace: str, name: str, table: TaskTable | Refusal, *, as_of: datetime) -> Tasks:
    """The whole table; without rows, and with the reason, where nothing is known."""
    if isinstance(table, Refusal):
        doubt = f"{table.reason.note} {table.detail}".strip()
        return Tasks(namespace=namespace, name=name, as_of=as_of, doubt=doubt)
    return Tasks.model_construct(
        namespace=namespace,
        name=name,
        as_of=as_of,
        group_read_at=table.as_of,
        positions_as_of=table.positions_as_of,
        highest=table.highest,
        limit=table.limit,
        doubt=table.doubt,
        processes=tuple(_process(row) for row in table.processes),
        volumes=tuple(_volume(row) for row in table.volumes),
        speeds=SpeedsTold(
            restore=table.speeds.restore, pauses_up=table.speeds.pauses_up, pauses_down=table.speeds.pauses_down
        ),
        streams=None if table.streams is None else streams_told(table.streams),
        tasks=tuple(_task(row) for row in table.rows),
    )


def table_from(told: Tasks) -> TaskTable:
    """The table that was answered, in the core's values; ValueError for names that are none."""
    speeds = told.speeds
    return TaskTable(
        as_of=told.group_read_at or told.as_of,
        positions_as_of=told.positions_as_of,
        highest=None if told.highest is None else Ordinal(told.highest),
        limit=10_000 if told.limit is None else told.limit,
        rows=tuple(_row(task) for task in told.tasks),
        doubt=told.doubt,
        processes=tuple(_process_row(one) for one in told.processes),
        volumes=tuple(_volume_row(one) for one in told.volumes),
        speeds=Speeds(restore=speeds.restore, pauses_up=speeds.pauses_up, pauses_down=speeds.pauses_down),
        streams=None if told.streams is None else streams_row_from(told.streams),
    )


def findings_told(namespace: str, name: str, examined: Examination, *, as_of: datetime) -> Findings:
    """All findings, and what is in order."""
    return Findings(
        namespace=namespace,
        name=name,
        as_of=as_of,
        findings=tuple(map(finding_told, examined.findings)),
        fine=tuple(diagnosis.name for diagnosis in examined.fine),
    )


def group_told(namespace: str, name: str, reading: GroupReading, support: StreamsSupport | None) -> GroupTold:
    """The group of the newest reading.

    Args:
        namespace: Of the StreamApp.
        name: Of the StreamApp.
        reading: The newest one.
        support: What the brokers said about the streams protocol, if the group is a classic one.
    """
    group = reading.group
    if not isinstance(group, GroupDescription):
        return GroupTold(namespace=namespace, name=name, as_of=reading.ended_at, doubt=group.detail)
    streams = group.streams
    standbys = None if streams is None or not isinstance(streams.standbys, StandbySetting) else streams.standbys
    is_known = streams is not None or group.state is not GroupState.DEAD
    return GroupTold(
        namespace=namespace,
        name=name,
        as_of=reading.ended_at,
        protocol=None if not is_known else "classic" if streams is None else "streams",
        state=group.state.value,
        members=len(group.members),
        static_members=sum(member.instance_id is not None for member in group.members),
        settled=group.state is GroupState.STABLE and bool(group.members) and not group.unsettled,
        streams_supported=True if streams is not None else None if support is None else support.is_on,
        broker_release=_release(streams, support),
        standbys=None if standbys is None else standbys.replicas,
    )


def _release(streams: StreamsGroup | None, support: StreamsSupport | None) -> str | None:
    if streams is not None:
        return streams.broker_release
    return None if support is None else support.release


def finding_told(finding: Finding) -> FindingTold:
    """One finding, with the texts of its diagnosis."""
    diagnosis = finding.diagnosis
    return FindingTold(
        code=diagnosis.name,
        kind=finding.kind.value,
        severity=diagnosis.severity.value,
        title=diagnosis.title,
        detail=finding.detail,
        why=diagnosis.why,
        fix=diagnosis.fix,
        source=finding.source.value,
        ordinals=finding.ordinals,
        topic=finding.topic or None,
    )


def _task(row: TaskRow) -> Task:
    """One row; not validated, since a large application has thousands and the core's types have seen to it."""
    owner = row.owner
    return Task.model_construct(
        task=str(row.task),
        stateful=row.is_stateful,
        owner=None if owner is None else TaskOwner.model_construct(ordinal=owner.ordinal, member=owner.member),
        state=None if row.activity is None else row.activity.value,
        copies=tuple(
            TaskCopy.model_construct(
                ordinal=copy.ordinal, role=copy.role.value, lag=copy.lag, caught_up=copy.is_caught_up
            )
            for copy in row.copies
        ),
        covered_on=row.covered_on,
        records=row.records,
    )


def _row(task: Task) -> TaskRow:
    owner = task.owner
    return TaskRow(
        task=TaskId.parse(task.task),
        is_stateful=task.stateful,
        owner=None if owner is None else Owner(None if owner.ordinal is None else Ordinal(owner.ordinal), owner.member),
        activity=None if task.state is None else Activity(task.state),
        copies=tuple(
            CopySeen(Ordinal(copy.ordinal), Role(copy.role), copy.lag, is_caught_up=copy.caught_up)
            for copy in task.copies
        ),
        covered_on=None if task.covered_on is None else tuple(map(Ordinal, task.covered_on)),
        records=task.records,
    )


def _process(row: ProcessRow) -> Process:
    return Process.model_construct(
        ordinal=row.ordinal,
        process_id=str(row.process),
        threads=row.threads,
        lags=_lags(row.lags),
        newest_version=row.newest_version,
        kafka_version=row.kafka_version,
        standby_replicas=row.standby_replicas,
        state_bytes=row.state_bytes,
        tagged=row.is_tagged,
    )


def _process_row(told: Process) -> ProcessRow:
    return ProcessRow(
        ordinal=Ordinal(told.ordinal),
        process=ProcessId.parse(told.process_id),
        threads=told.threads,
        lags=_lags_by_task(told.lags),
        newest_version=told.newest_version,
        kafka_version=told.kafka_version,
        standby_replicas=told.standby_replicas,
        state_bytes=told.state_bytes,
        is_tagged=told.tagged,
    )


def _volume(row: VolumeRow) -> Volume:
    return Volume.model_construct(
        ordinal=row.ordinal,
        process_id=str(row.process),
        kept_at=row.kept_at,
        lags=_lags(row.lags),
    )


def _volume_row(told: Volume) -> VolumeRow:
    return VolumeRow(
        ordinal=Ordinal(told.ordinal),
        process=ProcessId.parse(told.process_id),
        kept_at=told.kept_at,
        lags=_lags_by_task(told.lags),
    )


def _lags(by_task: Mapping[TaskId, int]) -> dict[str, int]:
    return {str(task): lag for task, lag in sorted(by_task.items())}


def _lags_by_task(told: Mapping[str, int]) -> dict[TaskId, int]:
    return {TaskId.parse(task): lag for task, lag in told.items()}
