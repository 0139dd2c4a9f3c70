"""What is wrong with the operator and its cluster, as far as the API server shows it to whoever asks; for `doctor`.

Reads only. A right that the caller lacks makes a check one that could not be made, and is named.
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
from streamapp.core.doctor.diagnoses import Diagnosis, Finding, Kind, Source
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError, UnavailableError
from streamapp.kube.client.kinds import ADMISSION_POLICIES, AUTOSCALERS, POD_METRICS, PODS, SUBJECT_REVIEWS
from streamapp.kube.objects import rights

Json = dict[str, Any]


@dataclass(slots=True)
class Cluster:
    """What was found."""

    operator_namespace: str
    findings: list[Finding] = field(default_factory=list)
    fine: list[Diagnosis] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    """What a person wants to read first, by label."""
    pods: list[Json] | None = None
    """The operator's; None where they may not be listed."""
    leader: Leader | None = None
    told: OperatorTold | None = None

    def say(self, diagnosis: Diagnosis, detail: str, kind: Kind = Kind.FOUND) -> None:
        """Add a finding."""
        source = (
            Source.OPERATOR if self.told is not None and diagnosis is Diagnosis.VersionsDiffer else Source.KUBERNETES
        )
        self.findings.append(Finding(diagnosis=diagnosis, kind=kind, detail=plain(detail), source=source))


async def look_at_cluster(client: KubeClient, operator_namespace: str) -> Cluster:
    """Check everything; raises KubeError only where the API server does not answer at all."""
    cluster = Cluster(operator_namespace)
    await _definition(client, cluster)
    await _pods(client, cluster)
    await _leader(client, cluster)
    _version(cluster)
    await asyncio.gather(_rights(client, cluster), _policies(client, cluster), _metrics(client, cluster))
    return cluster


async def _definition(client: KubeClient, cluster: Cluster) -> None:
    served = await client.versions(GROUP)
    cluster.facts["definition"] = f"{KIND} {', '.join(served)}" if served else "none"
    if VERSION in served:
        cluster.fine.append(Diagnosis.DefinitionMissing)
    else:
        what = f"it serves {', '.join(served)}" if served else f"it knows nothing of {GROUP}"
        cluster.say(Diagnosis.DefinitionMissing, f"{VERSION} is needed; {what}")


async def _pods(client: KubeClient, cluster: Cluster) -> None:
    namespace = cluster.operator_namespace
    with_right = _Guarded(cluster, (Diagnosis.OperatorMissing, Diagnosis.OperatorNotReady))
    cluster.pods = await with_right.asked(
        lambda: client.list(PODS, namespace, OPERATOR_SELECTOR), f"list pods in {namespace}"
    )
    if cluster.pods is None:
        return
    ready = [pod for pod in cluster.pods if operator_pods.is_ready(pod)]
    cluster.facts["operator"] = f"namespace {namespace}, {len(ready)} of {len(cluster.pods)} pods ready"
    if not cluster.pods:
        cluster.say(Diagnosis.OperatorMissing, f"no pod in namespace {namespace} has the label {OPERATOR_SELECTOR}")
        return
    cluster.fine.append(Diagnosis.OperatorMissing)
    if not ready:
        names = ", ".join(pod["metadata"]["name"] for pod in cluster.pods[:5])
        cluster.say(Diagnosis.OperatorNotReady, f"pod {names} in namespace {namespace}")
        return
    cluster.fine.append(Diagnosis.OperatorNotReady)
    if len(ready) == 1:
        cluster.say(Diagnosis.OperatorNotRedundant, f"1 pod of {len(cluster.pods)} in namespace {namespace} is ready")
    else:
        cluster.fine.append(Diagnosis.OperatorNotRedundant)


async def _leader(client: KubeClient, cluster: Cluster) -> None:
    """Find who leads, and ask it."""
    if cluster.pods is not None and not cluster.pods:
        return
    try:
        cluster.leader = await operator_pods.leader(client, cluster.operator_namespace)
        cluster.told = await operator_pods.ask(client, cluster.leader, OPERATOR_PATH, OperatorTold)
    except CliError as error:
        is_leaderless = cluster.leader is None and "none holds the Lease" in error.why
        diagnosis = Diagnosis.OperatorLeaderless if is_leaderless else Diagnosis.OperatorUnreachable
        cluster.say(diagnosis, f"{error.what}: {error.why} ({error.next_step})")
        return
    by = "by its Lease" if cluster.leader.by_lease else "alone, without a Lease"
    cluster.facts["leader"] = f"{cluster.leader.pod}, {by}"
    cluster.fine += [Diagnosis.OperatorLeaderless, Diagnosis.OperatorUnreachable]


def _version(cluster: Cluster) -> None:
    here, images = version("streamapp-operator"), sorted(set(_images(cluster.pods or [])))
    image = f", image {', '.join(images)}" if images else ""
    if cluster.told is None:
        cluster.facts["version"] = f"operator not known{image}; this command line {here}"
        cluster.say(Diagnosis.VersionsDiffer, "the operator could not be asked", Kind.UNCHECKED)
        return
    cluster.facts["version"] = f"operator {cluster.told.release}{image}; this command line {here}"
    if cluster.told.release == here:
        cluster.fine.append(Diagnosis.VersionsDiffer)
    else:
        cluster.say(Diagnosis.VersionsDiffer, f"the operator is {cluster.told.release}, this is {here}")


def _images(pods: list[Json]) -> Iterator[str]:
    for pod in pods:
        containers = pod.get("spec", {}).get("containers") or ()
        yield from (str(one["image"]) for one in containers[:1] if "image" in one)


async def _rights(client: KubeClient, cluster: Cluster) -> None:
    """Ask the API server what the operator's service account may do."""
    account = next((pod.get("spec", {}).get("serviceAccountName") for pod in cluster.pods or ()), None)
    if account is None:
        cluster.say(Diagnosis.OperatorRightMissing, "it is not known as whom the operator runs", Kind.UNCHECKED)
        return
    watched: tuple[str, ...] = cluster.told.namespaces if cluster.told is not None else ()
    asked = list(_asked(cluster, watched))
    guarded = _Guarded(cluster, (Diagnosis.OperatorRightMissing,))

    async def ask_all() -> list[bool]:
        home, lease = cluster.operator_namespace, operator_pods.lease_of(cluster.pods or ())
        return await asyncio.gather(*(_is_allowed(client, home, account, lease, *one) for one in asked))

    allowed = await guarded.asked(ask_all, "create subjectaccessreviews.authorization.k8s.io")
    if allowed is None:
        return
    missing = [one for one, is_allowed in zip(asked, allowed, strict=True) if not is_allowed]
    if not missing:
        cluster.fine.append(Diagnosis.OperatorRightMissing)
        return
    named = "; ".join(
        f"{verb} {right.path}{f'.{right.group}' if right.group else ''}{f' in {where}' if where else ''}"
        for right, verb, where in missing[:8]
    )
    more = f"; and {len(missing) - 8} more" if len(missing) > 8 else ""
    cluster.say(
        Diagnosis.OperatorRightMissing, f"service account {cluster.operator_namespace}/{account}: {named}{more}"
    )


def _asked(cluster: Cluster, watched: tuple[str, ...]) -> Iterator[tuple[rights.Right, str, str]]:
    """Every right that the operator cannot do without, with its verb and namespace (empty: all)."""
    has_lease = cluster.leader is not None and cluster.leader.by_lease
    for right in rights.RIGHTS:
        is_own = right.where is rights.RightScope.OWN
        if right.optional or (is_own and not has_lease):
            continue
        for namespace in (cluster.operator_namespace,) if is_own else watched or ("",):
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


async def _policies(client: KubeClient, cluster: Cluster) -> None:
    guarded = _Guarded(cluster, (Diagnosis.AdmissionPoliciesAbsent,))
    found = await guarded.asked(
        lambda: client.list(ADMISSION_POLICIES, None, OPERATOR_SELECTOR),
        "list validatingadmissionpolicies.admissionregistration.k8s.io",
    )
    if found is None:
        return
    if found:
        cluster.fine.append(Diagnosis.AdmissionPoliciesAbsent)
        cluster.facts["policies"] = ", ".join(sorted(one["metadata"]["name"] for one in found))
    else:
        cluster.say(Diagnosis.AdmissionPoliciesAbsent, f"no policy has the label {OPERATOR_SELECTOR}")


async def _metrics(client: KubeClient, cluster: Cluster) -> None:
    """See whether autoscalers of StreamApps have their metrics; without any it does not matter."""
    guarded = _Guarded(cluster, (Diagnosis.MetricsApiAbsent,))
    autoscalers = await guarded.asked(
        lambda: client.list(AUTOSCALERS, None), "list horizontalpodautoscalers.autoscaling in all namespaces"
    )
    if autoscalers is None:
        return
    ours = [one for one in autoscalers if one["spec"]["scaleTargetRef"]["kind"] == KIND]
    if not ours:
        return
    try:
        why = "" if await client.serves(POD_METRICS) else f"{POD_METRICS.api_version} is not served"
    except UnavailableError as error:
        why = error.why
    if why:
        cluster.say(Diagnosis.MetricsApiAbsent, f"{why}; {len(ours)} autoscalers of StreamApps may need it")
    else:
        cluster.fine.append(Diagnosis.MetricsApiAbsent)


@dataclass(frozen=True, slots=True)
class _Guarded:
    """Reads that the caller may have no right to."""

    cluster: Cluster
    diagnoses: tuple[Diagnosis, ...]

    async def asked(self, ask: Callable[[], Awaitable[list[Any]]], right: str) -> list[Any] | None:
        """What was asked for; None where it was not given, and then the checks are said not to have been made."""
        try:
            return await ask()
        except KubeError as error:
            for diagnosis in self.diagnoses:
                self.cluster.say(diagnosis, f"{right}: {error.why}", Kind.UNCHECKED)
            return None
