"""What stands around a StatefulSet and does not fit the operator: Service, budgets, autoscalers, GitOps. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamapp.api.names import API_VERSION, KIND
from streamapp.api.v1alpha1.pod_template import mapping
from streamapp.cli.adoption.facts import (
    Facts,
    annotations_of,
    labels_of,
    owners_of,
    selects,
    uid_of,
)
from streamapp.cli.adoption.findings import Check, Finding
from streamapp.cli.errors import Unread
from streamapp.kube.objects.from_json import is_controlled_by

Json = dict[str, Any]

_MARKS = {
    "Helm": ("annotation", "meta.helm.sh/release-name"),
    "Argo CD": ("annotation", "argocd.argoproj.io/tracking-id"),
    "Argo CD, by its label": ("label", "argocd.argoproj.io/instance"),
    "Flux": ("label", "kustomize.toolkit.fluxcd.io/name"),
    "Flux, by Helm": ("label", "helm.toolkit.fluxcd.io/name"),
}
_EVICTING = {"Auto", "Recreate", "InPlaceOrRecreate"}


def managed_elsewhere(body: Mapping[str, Any], title: str) -> Iterator[Finding]:
    """The tool that would write an object again, or delete it, by the marks that it leaves."""
    for tool, (place, key) in _MARKS.items():
        found = (annotations_of(body) if place == "annotation" else labels_of(body)).get(key)
        if found:
            yield Finding(Check.ManagedElsewhere, f"{title}: {tool} ({key}: {found})")


def services(facts: Facts) -> Iterator[Finding]:
    """The operator makes a headless Service of this name; one that is headless already is handed over."""
    service = facts.service
    if service is None or is_controlled_by(service, uid_of(facts.streamapp)):
        return
    title = f"Service {facts.title}"
    spec = mapping(service.get("spec"))
    if spec.get("clusterIP") != "None":
        yield Finding(Check.ServiceInTheWay, f"{title} has a cluster IP")
    for owner in owners_of(service):
        if owner.get("controller"):
            yield Finding(Check.OwnerIsController, f"{title}: {owner.get('kind')} {owner.get('name')}")
    yield from managed_elsewhere(service, title)


def budgets(facts: Facts) -> Iterator[Finding]:
    """Every budget but the operator's own that selects the pods, or has its name."""
    for budget in facts.budgets:
        name, selector = budget["metadata"]["name"], mapping(budget.get("spec")).get("selector")
        if is_controlled_by(budget, uid_of(facts.streamapp)):
            continue
        if name == facts.name or (selector is not None and selects(mapping(selector), facts.pod_labels)):
            yield Finding(Check.BudgetInTheWay, name, f"kubectl delete pdb {name} -n {facts.namespace}")


def autoscalers(facts: Facts) -> Iterator[Finding]:
    """Those that are aimed at the StatefulSet; KEDA's by the ScaledObject, which makes the other one."""
    target = {"apiVersion": API_VERSION, "kind": KIND, "name": facts.name}
    yield from _aimed(facts, ("apps", "StatefulSet"), Check.AutoscalerAims, target)
    if isinstance(facts.vertical_autoscalers, Unread):
        yield Finding(Check.AutoscalersUnread, f"VerticalPodAutoscalers: {facts.vertical_autoscalers.why}")
        return
    for one in facts.vertical_autoscalers:
        spec = mapping(one.get("spec"))
        mode = mapping(spec.get("updatePolicy")).get("updateMode", "Auto")
        if _is_at(mapping(spec.get("targetRef")), ("apps", "StatefulSet"), facts.name) and mode in _EVICTING:
            name = one["metadata"]["name"]
            yield Finding(
                Check.VerticalAutoscalerEvicts,
                f"{name} (updateMode {mode})",
                _patch("vpa", name, facts.namespace, {"updatePolicy": {"updateMode": "Initial"}}),
            )


def autoscalers_of_streamapp(facts: Facts) -> Iterator[Finding]:
    """Those that are aimed at the StreamApp, which is about to go."""
    target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": facts.name}
    yield from _aimed(facts, (API_VERSION.partition("/")[0], KIND), Check.AutoscalerWaits, target)


def missing_rights(facts: Facts) -> Iterator[Finding]:
    """What the user has no right to do."""
    if facts.missing_rights:
        yield Finding(Check.RightMissing, ", ".join(facts.missing_rights))


def _aimed(facts: Facts, at: tuple[str, str], check: Check, target: Json) -> Iterator[Finding]:
    by_keda = set()
    for short, objects in (("scaledobject", facts.scaled_objects), ("hpa", facts.autoscalers)):
        if isinstance(objects, Unread):
            yield Finding(Check.AutoscalersUnread, f"{short}: {objects.why}")
            continue
        for one in _at(objects, at, facts.name):
            name = one["metadata"]["name"]
            if any(owner.get("kind") == "ScaledObject" and owner.get("name") in by_keda for owner in owners_of(one)):
                continue
            if short == "scaledobject":
                by_keda.add(name)
            command = _patch(short, name, facts.namespace, {"scaleTargetRef": target})
            yield Finding(check, f"{one.get('kind', short)} {name}", command)


def _at(objects: Sequence[Json], at: tuple[str, str], name: str) -> list[Json]:
    return [one for one in objects if _is_at(mapping(mapping(one.get("spec")).get("scaleTargetRef")), at, name)]


def _is_at(target: Mapping[str, Any], at: tuple[str, str], name: str) -> bool:
    """KEDA's own default is a Deployment of `apps/v1`."""
    group, kind = str(target.get("apiVersion") or "apps/v1").partition("/")[0], target.get("kind") or "Deployment"
    return (group, kind, target.get("name")) == (*at, name)


def _patch(short: str, name: str, namespace: str, spec: Json) -> str:
    text = json.dumps({"spec": spec}, separators=(",", ":"))
    return f"kubectl patch {short} {name} -n {namespace} --type=merge -p '{text}'"
