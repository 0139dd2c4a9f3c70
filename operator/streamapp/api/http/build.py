"""From the core's values to the operator's answers, and what a pod template says, for an examination.

Called by the controller, and for the template by the command line. Pure.
"""

from datetime import datetime

from streamapp.api.http.messages import Findings, FindingTold, Task, TaskCopy, TaskOwner, Tasks
from streamapp.api.v1alpha1.pod_template import mapping
from streamapp.api.validation.parse import InvalidStreamApp, StreamApp
from streamapp.core.doctor.diagnoses import Finding
from streamapp.core.doctor.examine import Examination
from streamapp.core.doctor.subject import TemplateFacts
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.status.task_table import TaskRow, TaskTable


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
        tasks=tuple(_task(row) for row in table.rows),
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
