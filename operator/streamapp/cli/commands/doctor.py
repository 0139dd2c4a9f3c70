"""`doctor`: checks the cluster, the operator, and each StreamApp.

The API server shows the cluster and the resources, and the operator gives its findings about each StreamApp. If the
operator does not answer, the report says so and shows the conditions of the last status.
"""

import asyncio
from datetime import datetime, timedelta

from streamapp.api.http.build import finding_told
from streamapp.api.http.messages import Findings, findings_path
from streamapp.cli.cluster import operator_pods, streamapps
from streamapp.cli.cluster.streamapps import Json
from streamapp.cli.cluster.target import Target
from streamapp.cli.cluster.workloads import if_served
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit, Unread
from streamapp.cli.model.app_view import AppView, view_of
from streamapp.cli.model.cluster_findings import ClusterExamination, examine_cluster
from streamapp.cli.model.doctor_report import DoctorReport, ReportPart
from streamapp.cli.model.resource_findings import last_conditions_of, of_resource, of_scaled_objects
from streamapp.cli.screens import documents, watch
from streamapp.cli.screens.doctor import doctor_screen
from streamapp.cli.text import console, durations
from streamapp.cli.text.console import Output
from streamapp.core.actions.decision import Answer
from streamapp.core.doctor.diagnoses import Diagnosis, Finding, FindingSource
from streamapp.core.doctor.examine import Examination
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError, UnauthenticatedError
from streamapp.kube.client.kinds import SCALED_OBJECTS, STREAM_APPS, Key
from streamapp.kube.client.kubeconfig import ClusterConnection

OLD = timedelta(minutes=15)
"""The operator examines each StreamApp at least every ten minutes."""
AT_ONCE = 8
"""Concurrent questions about StreamApps: the operator makes one answer at a time."""


def doctor(
    target: Target, operator_namespace: str, name: str | None, output: Output, *, everywhere: bool, with_code: bool
) -> int:
    """Show the findings; give the exit code."""
    report = run(_examine(target, operator_namespace, name, everywhere=everywhere))
    if output is Output.TABLE:
        console.show(doctor_screen(report))
    else:
        console.write(documents.of_report(report), output)
    return report.code if with_code else Exit.FINE


async def _examine(target: Target, operator_namespace: str, name: str | None, *, everywhere: bool) -> DoctorReport:
    """Check everything; CliError if the API server does not answer, or there is no such StreamApp."""
    connection = await streamapps.resolve(target)
    namespace = None if everywhere else streamapps.namespace_of(target, connection)
    async with streamapps.open_client(connection, streamapps.title_of(namespace, name)) as client:
        return await examine(client, connection, operator_namespace, namespace, name)


async def examine(
    client: KubeClient, connection: ClusterConnection, operator_namespace: str, namespace: str | None, name: str | None
) -> DoctorReport:
    """Check the cluster, and the StreamApps of a namespace or of all, through an open client."""
    cluster = await examine_cluster(client, operator_namespace)
    is_defined = not any(finding.diagnosis is Diagnosis.DefinitionMissing for finding in cluster.findings)
    resources = await _resources(client, connection, namespace, name) if is_defined else []
    now = watch.now()
    views = [view_of(resource, now) for resource in resources]
    turns = asyncio.Semaphore(AT_ONCE)
    apps = await asyncio.gather(*(_app(client, cluster, view, turns) for view in views))
    facts = {"cluster": f"{connection.server} (context {connection.context})", **cluster.facts, **_brokers(views)}
    return DoctorReport(
        cluster=ReportPart(
            title="cluster",
            facts=facts,
            findings=tuple(map(finding_told, cluster.findings)),
            fine=tuple(diagnosis.name for diagnosis in cluster.fine),
        ),
        apps=tuple(apps),
    )


async def _resources(
    client: KubeClient, connection: ClusterConnection, namespace: str | None, name: str | None
) -> list[Json]:
    if name is not None and namespace is not None:
        return [await streamapps.read(client, connection, Key(namespace, name))]
    return await client.list(STREAM_APPS, namespace)


async def _app(client: KubeClient, cluster: ClusterExamination, view: AppView, turns: asyncio.Semaphore) -> ReportPart:
    answer = await _ask(client, cluster, view, turns)
    own = of_resource(view)
    if view.is_of_streams_protocol:
        scalers = of_scaled_objects(view, await _scaled_objects(client, view))
        own = Examination(findings=(*own.findings, *scalers.findings), fine=(*own.fine, *scalers.fine))
    fine = tuple(diagnosis.name for diagnosis in own.fine)
    if not isinstance(answer, Findings):
        return ReportPart(
            title=view.name,
            facts=_facts(view, None) | {"statusFrom": _written(view)},
            findings=tuple(map(finding_told, (*answer, *own.findings))),
            fine=fine,
            last_conditions=last_conditions_of(view),
        )
    age = (answer.told_at or answer.as_of) - answer.as_of
    old: tuple[Finding, ...] = ()
    if age > OLD:
        detail = f"{int(age / timedelta(minutes=1))} minutes ago"
        old = (Finding(diagnosis=Diagnosis.FactsOld, detail=detail, source=FindingSource.OPERATOR),)
    return ReportPart(
        title=view.name,
        facts=_facts(view, answer.as_of),
        findings=(*map(finding_told, (*old, *own.findings)), *answer.findings),
        fine=(*fine, *answer.fine),
    )


async def _ask(
    client: KubeClient, cluster: ClusterExamination, view: AppView, turns: asyncio.Semaphore
) -> Findings | tuple[Finding, ...]:
    """The operator's findings; else the reason, unless it stands with the findings about the cluster."""
    if cluster.operator is None or cluster.leader is None:
        return ()
    metadata = view.streamapp.metadata
    try:
        async with turns:
            path = findings_path(metadata.namespace, metadata.name)
            return await operator_pods.ask(client, cluster.leader, path, Findings)
    except CliError as error:
        detail = f"{error.what}: {error.why} ({error.next_step})"
        return (Finding(diagnosis=Diagnosis.OperatorUnreachable, detail=detail, source=FindingSource.OPERATOR),)


async def _scaled_objects(client: KubeClient, view: AppView) -> tuple[Json, ...] | str:
    """Those of KEDA in its namespace; or why they cannot be listed."""
    try:
        found = await if_served(client, SCALED_OBJECTS, view.streamapp.metadata.namespace)
    except UnauthenticatedError:
        raise
    except KubeError as error:
        found = Unread(error.why)
    return f"list scaledobjects.keda.sh: {found.why}" if isinstance(found, Unread) else found


def _written(view: AppView) -> str:
    return "an unknown time" if view.status_written_at is None else durations.ago(view.status_written_at, view.now)


def _facts(view: AppView, as_of: datetime | None) -> dict[str, str]:
    facts = {"state": view.state.value}
    if as_of is not None:
        facts["asOf"] = as_of.isoformat()
    return facts


def _brokers(views: list[AppView]) -> dict[str, str]:
    """For each Kafka cluster, how many StreamApps reached it at the last status."""
    answers: dict[str, list[Answer]] = {}
    for view in views:
        spec = getattr(view.streamapp, "spec", None)
        if spec is not None:
            answers.setdefault(spec.kafka.bootstrap_servers, []).append(view.answer("KafkaReachable"))
    lines = [
        f"{servers}: reached for {reached.count(Answer.TRUE)} of {len(reached)}"
        for servers, reached in sorted(answers.items())
    ]
    return {"brokers": "; ".join(lines)} if lines else {}
