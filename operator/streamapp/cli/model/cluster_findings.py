"""The findings of `doctor` about the operator and its cluster, as far as the user may read them.

Reads only. If the user lacks a right, the checks that need it are reported as unchecked, with the name of the right.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from streamapp.api.http.messages import OPERATOR_PATH, OperatorTold
from streamapp.api.names import GROUP, KIND, VERSION
from streamapp.cli.cluster import operator_pods
from streamapp.cli.cluster.operator_pods import OPERATOR_SELECTOR, Leader
from streamapp.cli.errors import CliError
from streamapp.cli.text.sanitize import plain
from streamapp.core.doctor.diagnoses import Diagnosis, Finding, FindingKind, FindingSource
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError, UnavailableError
from streamapp.kube.client.kinds import ADMISSION_POLICIES, AUTOSCALERS, POD_METRICS, PODS, SUBJECT_REVIEWS
from streamapp.kube.objects import rights
from streamapp.kube.objects.from_json import is_ready

Json = dict[str, Any]


@dataclass(slots=True)
class ClusterExamination:
    """The findings so far, and what later checks need."""

    operator_namespace: str
    findings: list[Finding] = field(default_factory=list)
    fine: list[Diagnosis] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    """The first lines of the report, by label."""
    pods: list[Json] | None = None
    """The operator's pods; None if the user may not list them."""
    leader: Leader | None = None
    operator: OperatorTold | None = None
    """The operator's answer about itself."""

    def add(self, diagnosis: Diagnosis, detail: str, kind: FindingKind = FindingKind.FOUND) -> None:
        """Add a finding."""
        source = (
            FindingSource.OPERATOR
            if self.operator is not None and diagnosis is Diagnosis.VersionsDiffer
            else FindingSource.KUBERNETES
        )
        self.findings.append(Finding(diagnosis=diagnosis, kind=kind, detail=plain(detail), source=source))


async def examine_cluster(client: KubeClient, operator_namespace: str) -> ClusterExamination:
    """Run every check; raises KubeError only if the API server does not answer at all."""
    cluster = ClusterExamination(operator_namespace)
    await _definition(client, cluster)
    await _pods(client, cluster)
    await _leader(client, cluster)
    _version(cluster)
    await asyncio.gather(_rights(client, cluster), _policies(client, cluster), _metrics(client, cluster))
    return cluster


async def _definition(client: KubeClient, cluster: ClusterExamination) -> None:
    served = await client.versions(GROUP)
    cluster.facts["definition"] = f"{KIND} {', '.join(served)}" if served else "none"
    if VERSION in served:
        cluster.fine.append(Diagnosis.DefinitionMissing)
    else:
        what = f"it serves {', '.join(served)}" if served else f"it does not serve {GROUP}"
        cluster.add(Diagnosis.DefinitionMissing, f"{VERSION} is required; {what}")


async def _pods(client: KubeClient, cluster: ClusterExamination) -> None:
    namespace = cluster.operator_namespace
    guarded = _Guarded(cluster, (Diagnosis.OperatorMissing, Diagnosis.OperatorNotReady))
    cluster.pods = await guarded.run(
        lambda: client.list(PODS, namespace, OPERATOR_SELECTOR), f"list pods in {namespace}"
    )
    if cluster.pods is None:
        return
    ready = [pod for pod in cluster.pods if operator_pods.is_running(pod) and is_ready(pod)]
    cluster.facts["operator"] = f"namespace {namespace}, {len(ready)} of {len(cluster.pods)} pods ready"
    if not cluster.pods:
        cluster.add(Diagnosis.OperatorMissing, f"no pod in namespace {namespace} has the label {OPERATOR_SELECTOR}")
        return
    cluster.fine.append(Diagnosis.OperatorMissing)
    if not ready:
        names = ", ".join(pod["metadata"]["name"] for pod in cluster.pods[:5])
        cluster.add(Diagnosis.OperatorNotReady, f"pod {names} in namespace {namespace}")
        return
    cluster.fine.append(Diagnosis.OperatorNotReady)
    if len(ready) == 1:
        cluster.add(Diagnosis.OperatorNotRedundant, f"1 pod of {len(cluster.pods)} in namespace {namespace} is ready")
    else:
        cluster.fine.append(Diagnosis.OperatorNotRedundant)


async def _leader(client: KubeClient, cluster: ClusterExamination) -> None:
    """Find the leader, and ask it about itself."""
    if cluster.pods is not None and not cluster.pods:
        return
    try:
        cluster.leader = await operator_pods.find_leader(client, cluster.operator_namespace)
        cluster.operator = await operator_pods.ask(client, cluster.leader, OPERATOR_PATH, OperatorTold)
    except CliError as error:
        is_leaderless = cluster.leader is None and "none holds the Lease" in error.why
        diagnosis = Diagnosis.OperatorLeaderless if is_leaderless else Diagnosis.OperatorUnreachable
        cluster.add(diagnosis, f"{error.what}: {error.why} ({error.next_step})")
        return
    by = "by its Lease" if cluster.leader.by_lease else "alone, without a Lease"
    cluster.facts["leader"] = f"{cluster.leader.pod}, {by}"
    cluster.fine += [Diagnosis.OperatorLeaderless, Diagnosis.OperatorUnreachable]


def _version(cluster: ClusterExamination) -> None:
    here, images = version("streamapp-operator"), sorted(set(_images(cluster.pods or [])))
    image = f", image {', '.join(images)}" if images else ""
    if cluster.operator is None:
        cluster.facts["version"] = f"operator unknown{image}; command line {here}"
        cluster.add(Diagnosis.VersionsDiffer, "the operator did not answer", FindingKind.UNCHECKED)
        return
    cluster.facts["version"] = f"operator {cluster.operator.release}{image}; command line {here}"
    if cluster.operator.release == here:
        cluster.fine.append(Diagnosis.VersionsDiffer)
    else:
        cluster.add(Diagnosis.VersionsDiffer, f"the operator is {cluster.operator.release}, the command line is {here}")


def _images(pods: list[Json]) -> Iterator[str]:
    for pod in pods:
        containers = pod.get("spec", {}).get("containers") or ()
        yield from (str(container["image"]) for container in containers[:1] if "image" in container)


async def _rights(client: KubeClient, cluster: ClusterExamination) -> None:
    """Check the rights of the operator's service account."""
    account = next((pod.get("spec", {}).get("serviceAccountName") for pod in cluster.pods or ()), None)
    if account is None:
        cluster.add(
            Diagnosis.OperatorRightMissing, "the service account of the operator is unknown", FindingKind.UNCHECKED
        )
        return
    namespaces: tuple[str, ...] = cluster.operator.namespaces if cluster.operator is not None else ()
    required = list(_required_rights(cluster, namespaces))
    guarded = _Guarded(cluster, (Diagnosis.OperatorRightMissing,))

    async def ask_all() -> list[bool]:
        home, lease = cluster.operator_namespace, operator_pods.lease_of(cluster.pods or ())
        return await asyncio.gather(*(_is_allowed(client, home, account, lease, *right) for right in required))

    allowed = await guarded.run(ask_all, "create subjectaccessreviews.authorization.k8s.io")
    if allowed is None:
        return
    missing = [right for right, is_allowed in zip(required, allowed, strict=True) if not is_allowed]
    if not missing:
        cluster.fine.append(Diagnosis.OperatorRightMissing)
        return
    named = "; ".join(
        f"{verb} {right.path}{f'.{right.group}' if right.group else ''}{f' in {namespace}' if namespace else ''}"
        for right, verb, namespace in missing[:8]
    )
    more = f"; and {len(missing) - 8} more" if len(missing) > 8 else ""
    cluster.add(
        Diagnosis.OperatorRightMissing, f"service account {cluster.operator_namespace}/{account}: {named}{more}"
    )


def _required_rights(
    cluster: ClusterExamination, namespaces: tuple[str, ...]
) -> Iterator[tuple[rights.Right, str, str]]:
    """Every right that the operator needs, with its verb and namespace (empty: all)."""
    has_lease = cluster.leader is not None and cluster.leader.by_lease
    for right in rights.RIGHTS:
        is_own = right.where is rights.RightScope.OWN
        if right.optional or (is_own and not has_lease):
            continue
        for namespace in (cluster.operator_namespace,) if is_own else namespaces or ("",):
            for verb in right.verbs:
                yield right, verb, namespace


async def _is_allowed(
    client: KubeClient, home: str, account: str, lease: str, right: rights.Right, verb: str, namespace: str
) -> bool:
    spec = {
        "user": f"system:serviceaccount:{home}:{account}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{home}", "system:authenticated"],
        "resourceAttributes": right.attributes(verb, namespace, lease),
    }
    answer = await client.create(SUBJECT_REVIEWS, {"metadata": {}, "spec": spec})
    return bool(answer["status"]["allowed"])


async def _policies(client: KubeClient, cluster: ClusterExamination) -> None:
    guarded = _Guarded(cluster, (Diagnosis.AdmissionPoliciesAbsent,))
    policies = await guarded.run(
        lambda: client.list(ADMISSION_POLICIES, None, OPERATOR_SELECTOR),
        "list validatingadmissionpolicies.admissionregistration.k8s.io",
    )
    if policies is None:
        return
    if policies:
        cluster.fine.append(Diagnosis.AdmissionPoliciesAbsent)
        cluster.facts["policies"] = ", ".join(sorted(policy["metadata"]["name"] for policy in policies))
    else:
        cluster.add(Diagnosis.AdmissionPoliciesAbsent, f"no policy has the label {OPERATOR_SELECTOR}")


async def _metrics(client: KubeClient, cluster: ClusterExamination) -> None:
    """Check the metrics API if autoscalers of StreamApps need it."""
    guarded = _Guarded(cluster, (Diagnosis.MetricsApiAbsent,))
    autoscalers = await guarded.run(
        lambda: client.list(AUTOSCALERS, None), "list horizontalpodautoscalers.autoscaling in all namespaces"
    )
    if autoscalers is None:
        return
    ours = [autoscaler for autoscaler in autoscalers if autoscaler["spec"]["scaleTargetRef"]["kind"] == KIND]
    if not ours:
        return
    try:
        why = "" if await client.serves(POD_METRICS) else f"{POD_METRICS.api_version} is not served"
    except UnavailableError as error:
        why = error.why
    if why:
        cluster.add(Diagnosis.MetricsApiAbsent, f"{why}; {len(ours)} autoscalers of StreamApps can need it")
    else:
        cluster.fine.append(Diagnosis.MetricsApiAbsent)


@dataclass(frozen=True, slots=True)
class _Guarded:
    """Reads for which the user may lack the right."""

    cluster: ClusterExamination
    diagnoses: tuple[Diagnosis, ...]

    async def run(self, read: Callable[[], Awaitable[list[Any]]], right: str) -> list[Any] | None:
        """The result; None if the API server refuses, and then the checks are reported as unchecked."""
        try:
            return await read()
        except KubeError as error:
            for diagnosis in self.diagnoses:
                self.cluster.add(diagnosis, f"{right}: {error.why}", FindingKind.UNCHECKED)
            return None
