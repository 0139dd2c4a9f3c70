"""What stands in the way of an adoption, in the objects as they are. Pure; every check runs before every write."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from streamapp.api.names import ADOPTION_PAUSE, APP_LABEL
from streamapp.api.v1alpha1.pod_template import mapping, mappings
from streamapp.cli.adoption import manifest
from streamapp.cli.adoption.facts import (
    Facts,
    annotations_of,
    claim_templates,
    is_going,
    labels_of,
    ordinal_of,
    owners_of,
    uid_of,
)
from streamapp.cli.adoption.findings import Check, Finding
from streamapp.cli.adoption.manifest import Choices
from streamapp.cli.adoption.surroundings import autoscalers, budgets, managed_elsewhere, missing_rights, services
from streamapp.kube.objects.from_json import is_controlled_by

Json = dict[str, Any]
REVISION = "controller-revision-hash"
_DEFAULTS: Mapping[str, int] = {"minReadySeconds": 0, "revisionHistoryLimit": 10}
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def findings(facts: Facts, choices: Choices) -> tuple[Finding, ...]:
    """Every finding about a StatefulSet that is still to be adopted, errors as they come."""
    found = [one for check in _CHECKS for one in check(facts)]
    found += manifest.claim_findings(facts, choices)
    if facts.streamapp is None:
        found += manifest.findings_of(facts, choices)
    else:
        found += _streamapp_fits(facts)
    return tuple(found)


def _owner(facts: Facts) -> Iterator[Finding]:
    for owner in owners_of(facts.statefulset):
        if owner.get("controller"):
            yield Finding(
                Check.OwnerIsController, f"StatefulSet {facts.title}: {owner.get('kind')} {owner.get('name')}"
            )
    if facts.statefulset is not None:
        yield from managed_elsewhere(facts.statefulset, f"StatefulSet {facts.title}")


def _ordinals(facts: Facts) -> Iterator[Finding]:
    start = mapping(mapping(mapping(facts.statefulset).get("spec")).get("ordinals")).get("start") or 0
    if start:
        yield Finding(Check.OrdinalsShifted, f"spec.ordinals.start is {start}")
    if facts.replicas == 0:
        yield Finding(Check.NoPods, f"StatefulSet {facts.title}")


def _pods(facts: Facts) -> Iterator[Finding]:
    """All ordinals are there and well; the pods of a StatefulSet that is going lose their owner one by one."""
    uid, goes = uid_of(facts.statefulset), is_going(facts.statefulset)
    beyond = [pod["metadata"]["name"] for pod in facts.pods if ordinal_of(pod) >= facts.replicas]
    strange = [] if goes else [pod["metadata"]["name"] for pod in facts.pods if not is_controlled_by(pod, uid)]
    for words, names in (
        ("missing", facts.missing_pods),
        ("above the replicas", beyond),
        ("not ready", facts.unready_pods),
        ("of another owner", strange),
    ):
        if names:
            yield Finding(Check.PodsUnwell, f"{words}: {', '.join(sorted(names))}")


def _rollout(facts: Facts) -> Iterator[Finding]:
    """Once the adoption has begun, the label in the template is a new revision, which no pod is to have."""
    if facts.has_labelled_template or facts.statefulset is None:
        return
    status, spec = mapping(facts.statefulset.get("status")), mapping(facts.statefulset.get("spec"))
    newest = status.get("updateRevision")
    older = sorted(pod["metadata"]["name"] for pod in facts.pods if labels_of(pod).get(REVISION) != newest)
    is_on_delete = mapping(spec.get("updateStrategy")).get("type") == "OnDelete"
    if older and newest:
        check = Check.OldTemplateInPods if is_on_delete else Check.RolloutUnfinished
        yield Finding(check, ", ".join(older))


def _volumes(facts: Facts) -> Iterator[Finding]:
    """A pod whose volume is another claim than the StatefulSet would give it is one that it cannot take over."""
    for template in claim_templates(facts.statefulset)[:1]:
        name = str(mapping(template.get("metadata")).get("name"))
        for pod in facts.pods:
            wanted = f"{name}-{pod['metadata']['name']}"
            used = [
                mapping(volume.get("persistentVolumeClaim")).get("claimName")
                for volume in mappings(mapping(pod.get("spec")).get("volumes"))
                if volume.get("name") == name
            ]
            claim = next((one for one in facts.claims if one["metadata"]["name"] == wanted), None)
            if used != [wanted] or claim is None or is_going(claim):
                yield Finding(Check.VolumesDiffer, f"pod {pod['metadata']['name']}: {wanted}")


def _claims_owned(facts: Facts) -> Iterator[Finding]:
    """Claims that Kubernetes would delete with their owner; the way there does not rest on how it takes owners away."""
    owned = sorted(claim["metadata"]["name"] for claim in facts.claims if owners_of(claim))
    if facts.claims_deleted_when:
        when = ", ".join(facts.claims_deleted_when)
        yield Finding(Check.ClaimsOwned, f"persistentVolumeClaimRetentionPolicy: {when}")
    elif owned:
        yield Finding(Check.ClaimsOwned, f"owned still: {', '.join(owned)}")


def _service_name(facts: Facts) -> Iterator[Finding]:
    found = str(mapping(mapping(facts.statefulset).get("spec")).get("serviceName") or "")
    if found and found != facts.name:
        containers = json.dumps(mapping(facts.template.get("spec")).get("containers"))
        used = "; a container names it" if found in containers else ""
        yield Finding(Check.ServiceNameDiffers, f"Service {found}{used}")


def _consequences(facts: Facts) -> Iterator[Finding]:
    spec = mapping(mapping(facts.statefulset).get("spec"))
    strategy = mapping(spec.get("updateStrategy")).get("type", "RollingUpdate")
    if strategy != "OnDelete":
        yield Finding(Check.UpdateStrategyChanges, f"today {strategy}")
    policy = spec.get("podManagementPolicy") or "OrderedReady"
    if policy != "Parallel":
        yield Finding(Check.PodManagementChanges, f"today {policy}")
    dropped = _dropped(facts)
    if dropped:
        yield Finding(Check.FieldsDropped, ", ".join(dropped))
    if facts.streamapp is None:
        yield Finding(Check.RestartsLater, "spec.rollout.policy: Paused")


def _dropped(facts: Facts) -> list[str]:
    """What the StatefulSet says and the operator's will not: of its spec, of itself, and of its claim template."""
    spec = mapping(mapping(facts.statefulset).get("spec"))
    fields = [f"{field}: {spec[field]}" for field, default in _DEFAULTS.items() if spec.get(field, default) != default]
    own = [f"label {key}" for key in labels_of(facts.statefulset) if key != APP_LABEL]
    own += [f"annotation {key}" for key in annotations_of(facts.statefulset) if key != _LAST_APPLIED]
    claims = [
        f"{kind} {key} of new claims"
        for template in claim_templates(facts.statefulset)
        for kind, given in (("label", labels_of(template)), ("annotation", annotations_of(template)))
        for key in given
    ]
    return [*fields, *own, *claims]


def _streamapp_fits(facts: Facts) -> Iterator[Finding]:
    """A StreamApp that the user wrote, or an earlier run of the command."""
    resource = facts.streamapp or {}
    spec = mapping(resource.get("spec"))
    replicas = spec.get("replicas", 1)
    if is_going(resource):
        yield Finding(Check.StreamAppDiffers, "it is being deleted")
    if isinstance(replicas, int) and replicas < facts.replicas:
        detail = f"spec.replicas is {replicas}, the StatefulSet has {facts.replicas}"
        command = f"kubectl scale streamapp/{facts.name} -n {facts.namespace} --replicas={facts.replicas}"
        yield Finding(Check.StreamAppDiffers, detail, command)
    if spec.get("paused") and ADOPTION_PAUSE not in annotations_of(resource):
        yield Finding(
            Check.StreamAppDiffers,
            "spec.paused is true: the operator would not make the StatefulSet",
            f"kubectl streamapp resume {facts.name} -n {facts.namespace}",
        )
    if spec.get("dryRun"):
        yield Finding(Check.StreamAppDiffers, "spec.dryRun is true: the operator would not make the StatefulSet")
    invalid = manifest.invalidity(resource)
    if invalid:
        yield Finding(Check.StreamAppDiffers, invalid)
    else:
        yield from _state_fits(facts, spec)


def _state_fits(facts: Facts, spec: Mapping[str, Any]) -> Iterator[Finding]:
    """The claim's name binds each volume to its ordinal; the rest of the template decides about new volumes."""
    found, container = mapping(spec.get("state")), str(spec.get("container") or "")
    wanted = manifest.state_of(facts, manifest.application_container(facts, Choices(container=container)))
    defaults = {"claimName": "state"}
    for field in ("claimName", "mountPath"):
        given = found.get(field, defaults.get(field)) if found else None
        if given != wanted.get(field):
            yield Finding(
                Check.StreamAppDiffers, f"spec.state.{field} is {given}, the StatefulSet has {wanted.get(field)}"
            )


_CHECKS: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    _owner,
    _ordinals,
    _pods,
    _rollout,
    _volumes,
    _claims_owned,
    services,
    _service_name,
    budgets,
    autoscalers,
    missing_rights,
    _consequences,
)
