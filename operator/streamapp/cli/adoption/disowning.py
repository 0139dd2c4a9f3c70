"""The way back: the next write of `disown`, its checks, and the StatefulSet that takes the pods. Pure.

The operator is paused first and has said so, so that it writes nothing any more. The StreamApp goes last: as long as it
is there, the next run of the command finds where the last one ended.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from streamapp.api.names import APP_LABEL, HOLD_RECORD, LEASE, MANAGED_BY_LABEL, MANAGER, OPERATOR_LABEL
from streamapp.api.v1alpha1.pod_template import mapping, mappings
from streamapp.cli.adoption.checks import REVISION
from streamapp.cli.adoption.facts import (
    Facts,
    annotations_of,
    has_app_label,
    is_going,
    is_observed,
    labels_of,
    owners_of,
    uid_of,
)
from streamapp.cli.adoption.findings import Check, Finding
from streamapp.cli.adoption.steps import (
    LETS_PODS_GO,
    SEES_CHANGE,
    CreateStatefulSet,
    DeleteStreamApp,
    Done,
    OrphanPods,
    Patch,
    Step,
    Wait,
    label_pods,
)
from streamapp.cli.adoption.surroundings import autoscalers_of_streamapp, managed_elsewhere, missing_rights
from streamapp.kube.objects.from_json import is_controlled_by

Json = dict[str, Any]
_OWN_LABELS = (APP_LABEL, OPERATOR_LABEL)


def findings(facts: Facts) -> tuple[Finding, ...]:
    """What stands in the way, and what becomes of it."""
    found = [*managed_elsewhere(facts.streamapp or {}, f"StreamApp {facts.title}"), *missing_rights(facts)]
    found += autoscalers_of_streamapp(facts)
    if facts.is_adopted:
        found += [*_at_rest(facts), *_claims(facts), Finding(Check.RestartsUnchecked, f"StatefulSet {facts.title}")]
    elif facts.statefulset is not None:
        found.append(Finding(Check.NotAdopted, f"StatefulSet {facts.title}"))
    return tuple(found)


def _at_rest(facts: Facts) -> Iterator[Finding]:
    if annotations_of(facts.statefulset).get(HOLD_RECORD):
        yield Finding(Check.StepOpen, f"annotation {HOLD_RECORD}")
    desired = mapping(mapping(facts.streamapp).get("spec")).get("replicas", 1)
    if desired != facts.replicas:
        yield Finding(Check.ReplicasDiffer, f"desired {desired}, current {facts.replicas}")
    unwell = sorted([*facts.unready_pods, *facts.missing_pods])
    if unwell:
        yield Finding(Check.PodsUnwell, ", ".join(unwell))


def _claims(facts: Facts) -> Iterator[Finding]:
    if facts.claims_deleted_when:
        yield Finding(Check.ClaimsOwned, "spec.state.retention")


def next_step(facts: Facts, *, despite_operator: bool) -> Step:
    """What to do next, if `findings` has no obstacle."""
    streamapp, statefulset = facts.streamapp, facts.statefulset
    if streamapp is None:
        return Done()
    if is_going(streamapp):
        return Wait("the StreamApp is gone", 60, "see kubectl get streamapp: a finalizer keeps it")
    if statefulset is not None and is_going(statefulset):
        return LETS_PODS_GO
    paused = _pause(streamapp, despite_operator=despite_operator)
    if paused is not None:
        return paused
    if facts.is_adopted or statefulset is None:
        return label_pods(facts, mapping(plain_selector(facts).get("matchLabels"))) or (
            CreateStatefulSet(plain_statefulset(facts)) if statefulset is None else OrphanPods(statefulset)
        )
    return _after(facts, statefulset, streamapp)


def _pause(streamapp: Json, *, despite_operator: bool) -> Step | None:
    """None: the operator knows that it is paused, and writes nothing."""
    if not mapping(streamapp.get("spec")).get("paused"):
        return Patch("StreamApp", streamapp, {"spec": {"paused": True}}, "pauses the StreamApp")
    if is_observed(streamapp) or despite_operator:
        return None
    step = "if no operator runs and none will, add --despite-operator"
    return Wait("the operator knows that it is paused", 60, step)


def plain_selector(facts: Facts) -> Json:
    """The selector of the way back: what it was, or else the labels that the user gives the pods, or the name."""
    origin = facts.origin
    if origin is not None and origin.selector and APP_LABEL not in mapping(origin.selector.get("matchLabels")):
        return origin.selector
    given = {key: value for key, value in _given_labels(facts).items() if key not in _OWN_LABELS}
    return {"matchLabels": given or {"app.kubernetes.io/name": facts.name}}


def plain_statefulset(facts: Facts) -> Json:
    """The StatefulSet without anything of the operator's; what starts pods is the StreamApp's template."""
    resource = facts.streamapp or {}
    spec, origin, selector = mapping(resource.get("spec")), facts.origin, plain_selector(facts)
    template: Json = deepcopy(dict(mapping(spec.get("template"))))
    labels = {key: value for key, value in _given_labels(facts).items() if key not in _OWN_LABELS}
    labels |= mapping(selector.get("matchLabels"))
    template["metadata"] = {**mapping(template.get("metadata")), "labels": labels}
    made: Json = {
        "replicas": max(facts.least_replicas, facts.replicas if facts.statefulset is not None else 0),
        "serviceName": facts.name if origin is None else origin.service_name,
        "podManagementPolicy": "Parallel" if origin is None else origin.pod_management_policy,
        "updateStrategy": {"type": "OnDelete"},
        "selector": selector,
        "template": template,
    }
    state = mapping(spec.get("state"))
    if state:
        name = str(state.get("claimName") or "state")
        _mount(template, str(spec.get("container") or ""), name, str(state.get("mountPath")))
        claim = {"metadata": {"name": name}, "spec": deepcopy(dict(mapping(state.get("volumeClaimTemplate"))))}
        claim["spec"].setdefault("accessModes", ["ReadWriteOnce"])
        made["volumeClaimTemplates"] = [claim]
    metadata = {"name": facts.name, "namespace": facts.namespace, "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": made}


def _mount(template: Json, container: str, volume: str, path: str) -> None:
    """Mount the volume, where the template leaves that to the operator."""
    containers = template["spec"]["containers"]
    chosen = next((one for one in containers if one.get("name") == container), containers[0])
    mounts = chosen.get("volumeMounts") or []
    if not any(mount.get("name") == volume for mount in mappings(mounts)):
        chosen["volumeMounts"] = [*mounts, {"name": volume, "mountPath": path}]


def _after(facts: Facts, statefulset: Json, streamapp: Json) -> Step:
    """The StatefulSet is not the operator's: give back what the StreamApp still owns, and delete it."""
    origin, uid = facts.origin, uid_of(statefulset)
    if any(not is_controlled_by(pod, uid) for pod in facts.pods):
        return Wait("the StatefulSet has taken all pods", 120, "see kubectl describe statefulset")
    if origin is not None and origin.uid == uid:
        reverted = _revert(facts, statefulset)
        if reverted is not None:
            return reverted
    for kind, body in (("Service", facts.service), ("PodDisruptionBudget", _own_budget(facts))):
        if body is not None and is_controlled_by(body, uid_of(streamapp)):
            return Patch(kind, body, _free(facts, kind, body, streamapp), f"takes the {kind} from the StreamApp")
    for pod in facts.pods:
        if has_app_label(pod, facts.name):
            return Patch("Pod", pod, {"metadata": {"labels": {APP_LABEL: None}}}, "removes the operator's label")
    return DeleteStreamApp(streamapp)


def _revert(facts: Facts, statefulset: Json) -> Step | None:
    """Give the StatefulSet its own template back, and its update strategy only where that restarts no pod."""
    if facts.pod_labels.get(APP_LABEL) or labels_of(statefulset).get(APP_LABEL):
        labels = {"metadata": {"labels": {APP_LABEL: None}}}
        return Patch("StatefulSet", statefulset, {**labels, "spec": {"template": labels}}, "gives its template back")
    status, origin = mapping(statefulset.get("status")), facts.origin
    if not is_observed(statefulset):
        return SEES_CHANGE
    newest = all(labels_of(pod).get(REVISION) == status.get("updateRevision") for pod in facts.pods)
    strategy = mapping(mapping(statefulset.get("spec")).get("updateStrategy")).get("type")
    if origin is None or not newest or strategy == origin.update_strategy.get("type"):
        return None
    patch = {"spec": {"updateStrategy": origin.update_strategy}}
    return Patch("StatefulSet", statefulset, patch, "gives its update strategy back; no pod has another template")


def _own_budget(facts: Facts) -> Json | None:
    return next((one for one in facts.budgets if one["metadata"]["name"] == facts.name), None)


def _free(facts: Facts, kind: str, body: Json, streamapp: Json) -> Json:
    """Take owner and labels away, and select the pods by labels that stay."""
    owners = [owner for owner in owners_of(body) if owner.get("uid") != uid_of(streamapp)]
    labels: Json = dict.fromkeys(_OWN_LABELS)
    if labels_of(body).get(MANAGED_BY_LABEL) == MANAGER:
        labels[MANAGED_BY_LABEL] = None
    plain, before = plain_selector(facts), facts.origin
    selector: Json = {"matchLabels": {APP_LABEL: None, **mapping(plain.get("matchLabels"))}}
    if kind == "Service":
        was = None if before is None else before.service_selector
        selector = {APP_LABEL: None, **(was or mapping(plain.get("matchLabels")))}
    metadata: Json = {"labels": labels, "ownerReferences": owners or None}
    if kind != "PodDisruptionBudget":
        return {"metadata": metadata, "spec": {"selector": selector}}
    # The operator may have left one pod out, for the drain of a node; nobody would take it in again.
    spec = {"selector": {**selector, "matchExpressions": None}, "maxUnavailable": 1}
    return {"metadata": {**metadata, "annotations": {LEASE: None}}, "spec": spec}


def _given_labels(facts: Facts) -> Mapping[str, Any]:
    template = mapping(mapping(mapping(facts.streamapp).get("spec")).get("template"))
    return mapping(mapping(template.get("metadata")).get("labels"))
