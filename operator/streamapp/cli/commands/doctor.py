"""`kubectl streamapp doctor`: the cluster, the operator, and one part for each StreamApp.

Asks the API server, and through it the operator. Where the operator gives no answer, that is a finding, and the
resources' last status stands in for it.
"""

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta

from streamapp.api.http.build import finding_told
from streamapp.api.http.messages import Findings, findings_path
from streamapp.cli.cluster import operator_pods, streamapps
from streamapp.cli.cluster.streamapps import Json
from streamapp.cli.cluster.target import Where
from streamapp.cli.errors import CliError
from streamapp.cli.model.app_view import View, view_of
from streamapp.cli.model.cluster_findings import Cluster, look_at_cluster
from streamapp.cli.model.doctor_report import Part, Report
from streamapp.cli.model.resource_findings import instead_of_operator, of_resource
from streamapp.cli.screens import watch
from streamapp.core.actions.decision import Answer
from streamapp.core.doctor.diagnoses import Diagnosis, Finding, Source
from streamapp.core.doctor.examine import Examination
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.kinds import STREAM_APPS, Key
from streamapp.kube.client.kubeconfig import ClusterConnection

OLD = timedelta(minutes=15)
"""A pass is made every ten minutes at least."""
AT_ONCE = 8
"""StreamApps that the operator is asked about together: it makes one answer at a time."""


async def diagnose(where: Where, operator_namespace: str, name: str | None, *, everywhere: bool) -> Report:
    """Look at everything; CliError where the API server does not answer, or there is no such StreamApp."""
    found = await streamapps.find(where)
    namespace = None if everywhere else streamapps.namespace_of(where, found)
    async with streamapps.opened(found, streamapps.title_of(namespace, name)) as client:
        cluster = await look_at_cluster(client, operator_namespace)
        is_defined = not any(one.diagnosis is Diagnosis.DefinitionMissing for one in cluster.findings)
        resources = await _resources(client, found, namespace, name) if is_defined else []
        now = watch.now()
        views = [view_of(one, now) for one in resources]
        turns = asyncio.Semaphore(AT_ONCE)
        apps = await asyncio.gather(*(_app(client, cluster, view, turns) for view in views))
    facts = {"cluster": f"{found.server} (context {found.context})", **cluster.facts, **_brokers(views)}
    return Report(
        cluster=Part(
            title="cluster",
            facts=facts,
            findings=tuple(map(finding_told, cluster.findings)),
            fine=tuple(one.name for one in cluster.fine),
        ),
        apps=tuple(apps),
    )


async def _resources(
    client: KubeClient, found: ClusterConnection, namespace: str | None, name: str | None
) -> list[Json]:
    if name is not None and namespace is not None:
        return [await streamapps.read(client, found, Key(namespace, name))]
    return await client.list(STREAM_APPS, namespace)


async def _app(client: KubeClient, cluster: Cluster, view: View, turns: asyncio.Semaphore) -> Part:
    metadata = view.found.metadata
    own = of_resource(view)
    told: Findings | None = None
    unasked: tuple[Finding, ...] = ()
    if cluster.told is not None and cluster.leader is not None:
        try:
            async with turns:
                path = findings_path(metadata.namespace, metadata.name)
                told = await operator_pods.ask(client, cluster.leader, path, Findings)
        except CliError as error:
            detail = f"{error.what}: {error.why} ({error.next_step})"
            unasked = (Finding(diagnosis=Diagnosis.OperatorUnreachable, detail=detail, source=Source.OPERATOR),)
    if told is None:
        return _part(view, own, instead_of_operator(view), unasked)
    age = (told.told_at or told.as_of) - told.as_of
    old: tuple[Finding, ...] = ()
    if age > OLD:
        detail = f"{int(age / timedelta(minutes=1))} minutes ago"
        old = (Finding(diagnosis=Diagnosis.FactsOld, detail=detail, source=Source.OPERATOR),)
    return Part(
        title=view.name,
        facts=_facts(view, told.as_of),
        findings=(*map(finding_told, (*old, *own.findings)), *told.findings),
        fine=(*(one.name for one in own.fine), *told.fine),
    )


def _part(view: View, own: Examination, instead: Examination, unasked: Iterable[Finding]) -> Part:
    return Part(
        title=view.name,
        facts=_facts(view, None),
        findings=tuple(map(finding_told, (*unasked, *own.findings, *instead.findings))),
        fine=tuple(one.name for one in (*own.fine, *instead.fine)),
    )


def _facts(view: View, as_of: datetime | None) -> dict[str, str]:
    facts = {"state": view.state.value}
    if as_of is not None:
        facts["asOf"] = as_of.isoformat()
    return facts


def _brokers(views: list[View]) -> dict[str, str]:
    """What the operator last said of each cluster's brokers."""
    answers: dict[str, list[Answer]] = {}
    for view in views:
        spec = getattr(view.found, "spec", None)
        if spec is not None:
            answers.setdefault(spec.kafka.bootstrap_servers, []).append(view.answer("KafkaReachable"))
    said = [
        f"{servers}: answered for {told.count(Answer.TRUE)} of {len(told)}" for servers, told in sorted(answers.items())
    ]
    return {"brokers": "; ".join(said)} if said else {}
