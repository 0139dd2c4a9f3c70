"""The objects that a StreamApp becomes: StatefulSet, headless Service, PodDisruptionBudget. Pure builders.

Called by the controller's applier; all of them are for server-side apply. Replicas are no part of the StatefulSet here:
a manager that applied them once and leaves them out the next time gives them up, and the API server puts the default in
their place, which is 1. So whoever applies this must never have applied replicas, and whoever creates it, with
replicas, must be another manager and hand over.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from streamapp.api.names import (
    API_VERSION,
    APP_LABEL,
    APPLICATION_ID,
    CONTAINER,
    CREATION,
    KEPT_STATE,
    KIND,
    LEASE,
    MANAGED_BY_LABEL,
    MANAGER,
    OPERATOR_LABEL,
    ORDINAL_LABEL,
    POD_NAME_LABEL,
    PROCESS_ID,
    TEMPLATE_HASH,
)
from streamapp.api.objects.agent_injection import accepted_by, inject
from streamapp.api.objects.volume_init import seeder
from streamapp.api.v1alpha1.pod_template import mapping, mappings
from streamapp.api.v1alpha1.quantities import parse_quantity
from streamapp.api.v1alpha1.spec import State, StreamAppSpec
from streamapp.api.validation.conflicts import AGENT, FIRST_SEEDER, OWN_INIT_CONTAINERS
from streamapp.api.validation.parse import InvalidStreamApp, StreamApp
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.workload import Budget

Manifest = dict[str, Any]
MOST_HASHES = 10_000
"""StreamApps whose hash an installation remembers; the first one goes when there is another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What the objects owe to the installation of the operator that makes them."""

    name: str
    """Keeps two installations apart; the value of a label."""
    seed_image: str
    """Of the init container, see `seeding`."""
    seed_pull_policy: str = "IfNotPresent"
    agent_image: str = ""
    """Of the init container that brings the agent, see `injection`."""
    agent_pull_policy: str = "IfNotPresent"
    accepted: Callable[[str], str] = lambda _: ""
    """The hashes of the tokens that agents of a StreamApp accept, by its UID; empty while the operator has no key."""
    hashes: dict[str, tuple[StreamAppSpec, str, tuple[str, str | None] | None, str]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The last hash of each StreamApp by UID, after the spec, the tokens and the storage that it was made of."""


def statefulset(app: StreamApp, installation: Installation, live: Mapping[str, Any] | None = None) -> Manifest:
    """The StatefulSet without replicas.

    `Parallel`, since the operator takes pods away one by one and pods that come need not wait for each other;
    `OnDelete`, since it alone restarts them.

    Args:
        app: What it is made of.
        installation: Who makes it.
        live: The one there is. An operator that has lost its key leaves the agents as they stand in there: pods must
            not restart for that. Its claim templates keep size and storage class.
    """
    accepted = installation.accepted(app.metadata.uid) or accepted_by(live)
    spec: Manifest = {
        "serviceName": app.metadata.name,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {APP_LABEL: app.metadata.name}},
        "template": _template(app, installation, accepted),
        **removal_fields(app),
    }
    if app.spec.state is not None:
        spec["volumeClaimTemplates"] = [_claim(app, app.spec.state, live)]
    made = mapping(mapping(mapping(live).get("metadata")).get("annotations")).get(CREATION)
    annotations = {TEMPLATE_HASH: _hash(spec), **({} if made is None else {CREATION: made})}
    metadata = {**_metadata(app, installation), "annotations": annotations}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}


def removal_fields(app: StreamApp) -> Manifest:
    """The fields of the StatefulSet's spec by which Kubernetes itself would restart pods or delete claims."""
    return {"updateStrategy": {"type": "OnDelete"}, **retention_fields(app)}


def retention_fields(app: StreamApp | InvalidStreamApp) -> Manifest:
    """The field by which Kubernetes deletes claims; of an invalid spec only what keeps them. Empty without claims."""
    if isinstance(app, InvalidStreamApp):
        policy = dict.fromkeys(app.keeps_claims, "Retain")
    elif app.spec.state is None:
        policy = {}
    else:
        retention = app.spec.state.retention
        policy = {"whenScaled": retention.when_scaled.value, "whenDeleted": retention.when_deleted.value}
    return {"persistentVolumeClaimRetentionPolicy": policy} if policy else {}


def with_creation(manifest: Manifest, creation: str) -> Manifest:
    """The StatefulSet with the name of the try that is to create it."""
    metadata = manifest["metadata"]
    annotations = {**mapping(metadata.get("annotations")), CREATION: creation}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def with_replicas(manifest: Manifest, replicas: int) -> Manifest:
    """The StatefulSet as it is to be created."""
    return {**manifest, "spec": {"replicas": replicas, **manifest["spec"]}}


def is_ours(app: StreamApp | InvalidStreamApp, installation: Installation, live: Mapping[str, Any]) -> bool:
    """Tell whether a StatefulSet is controlled by this StreamApp, and made by this installation."""
    metadata = live.get("metadata", {})
    made_by = mapping(metadata.get("labels")).get(OPERATOR_LABEL)
    return (_controllers(metadata), made_by) == ([app.metadata.uid], installation.name)


def other_installation(
    resource: Mapping[str, Any], installation: Installation, statefulset: Mapping[str, Any] | None
) -> str:
    """Name the other installation of the operator that a StreamApp belongs to; empty where it is ours.

    That is the one that its label names, and else the one that made its StatefulSet.

    Args:
        resource: The StreamApp as it was read.
        installation: Ours.
        statefulset: The StatefulSet of its name, whoever owns it.
    """
    metadata = mapping(resource.get("metadata"))
    made = mapping(mapping(statefulset).get("metadata"))
    found = [mapping(metadata.get("labels")).get(OPERATOR_LABEL)]
    if _controllers(made) == [metadata.get("uid")]:
        found.append(mapping(made.get("labels")).get(OPERATOR_LABEL))
    return next((str(name) for name in found if name and name != installation.name), "")


def _controllers(metadata: Mapping[str, Any]) -> list[Any]:
    """The UIDs of the owners that control an object; there is at most one, but for what a stranger wrote."""
    return [owner.get("uid") for owner in mappings(metadata.get("ownerReferences")) if owner.get("controller")]


def template_is_written(app: StreamApp, installation: Installation, live: Mapping[str, Any]) -> bool:
    """Tell whether the StatefulSet was last written from what the StreamApp says now."""
    written = mapping(live.get("metadata", {}).get("annotations")).get(TEMPLATE_HASH)
    return bool(written == _template_hash(app, installation, live))


def service(app: StreamApp, installation: Installation) -> Manifest:
    """The headless Service: names for the pods, ready or not, since a restoring pod is asked for its state too."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {APP_LABEL: app.metadata.name},
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(app, installation), "spec": spec}


def disruption_budget(
    app: StreamApp | InvalidStreamApp,
    installation: Installation,
    *,
    allows: Budget = Budget.OPEN,
    evictable: Ordinal | None = None,
    lease: int | None = None,
) -> Manifest:
    """The budget: one pod may be evicted at a time, or none, or only one that is named.

    A pod that is not ready may always be evicted: it serves nobody, and would block the drain of its node for ever.
    Not where the budget follows coverage: a pod that is not ready yet may hold the only copy of a task, and the
    operator leaves out those that hold nothing. Nothing of it comes from the spec, so that a budget can be opened again
    although the spec is invalid by then.

    Kubernetes counts the healthy pods against the replicas of the StatefulSet, whenever a pod or the budget changes. So
    between a removal and the mark on its pods a closed budget can let as many others go. If it left out the pods that
    leave, they could be evicted although the removal fails, or no operator runs. `minAvailable` counts no replicas; but
    if another writer owns `maxUnavailable` too, the API server refuses both, and so each scale-down would wait.

    Args:
        app: Whose pods it is for.
        installation: Who makes it.
        allows: What it allows.
        evictable: The pod that the selector leaves out: a pod without a budget can be evicted.
        lease: Transitions of the Lease, where it follows coverage.
    """
    selector: Manifest = {"matchLabels": {APP_LABEL: app.metadata.name}}
    if evictable is not None:
        name = f"{app.metadata.name}-{evictable}"
        selector["matchExpressions"] = [{"key": POD_NAME_LABEL, "operator": "NotIn", "values": [name]}]
    spec = {
        "maxUnavailable": 1 if allows is Budget.OPEN else 0,
        "unhealthyPodEvictionPolicy": "AlwaysAllow" if lease is None else "IfHealthyBudget",
        "selector": selector,
    }
    metadata = _metadata(app, installation)
    if lease is not None:
        metadata["annotations"] = {LEASE: str(lease)}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


def claim_patch(app: StreamApp, ordinal: Ordinal, process_id: str, kept_state: str | None = None) -> Manifest:
    """What is written on an ordinal's volume claim once its process has shown its ID, and when its pod is removed.

    Label and application ID too: a claim that was restored without labels, or that another application left, then
    looks like every other one.
    """
    labels = {APP_LABEL: app.metadata.name, ORDINAL_LABEL: str(ordinal)}
    annotations = {APPLICATION_ID: app.spec.application_id, PROCESS_ID: process_id}
    if kept_state is not None:
        annotations[KEPT_STATE] = kept_state
    return {"metadata": {"labels": labels, "annotations": annotations}}


def owner_reference(name: str, uid: str, *, blocks_deletion: bool = True) -> Manifest:
    """What makes a StreamApp the controller of an object."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": blocks_deletion,
    }


def _metadata(app: StreamApp | InvalidStreamApp, installation: Installation) -> Manifest:
    return {
        "name": app.metadata.name,
        "namespace": app.metadata.namespace,
        "labels": {
            APP_LABEL: app.metadata.name,
            MANAGED_BY_LABEL: MANAGER,
            OPERATOR_LABEL: installation.name,
        },
        "ownerReferences": [owner_reference(app.metadata.name, app.metadata.uid)],
    }


def _claim(app: StreamApp, state: State, live: Mapping[str, Any] | None) -> Manifest:
    """The volume claim template. A StatefulSet's can never change: nothing may stand here that could.

    So size and class stay as they were when the StatefulSet was made; `ExpandVolume` gives claims the size of today.
    """
    storage, storage_class = _storage(state, live)
    spec: Manifest = {
        "accessModes": [mode.value for mode in state.volume_claim_template.access_modes],
        "resources": {"requests": {"storage": storage}},
    }
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": state.claim_name,
            "labels": {APP_LABEL: app.metadata.name, MANAGED_BY_LABEL: MANAGER},
            "annotations": {APPLICATION_ID: app.spec.application_id},
        },
        "spec": spec,
    }


def other_storage_class(app: StreamApp, live: Mapping[str, Any]) -> str:
    """Say in which storage class a StatefulSet makes claims, if the spec names another one; empty if it does not."""
    if app.spec.state is None:
        return ""
    default = "the default class"
    wanted = app.spec.state.volume_claim_template.storage_class_name or default
    there = _storage(app.spec.state, live)[1] or default
    return "" if wanted == there else f"{there}, not {wanted}"


def _storage(state: State, live: Mapping[str, Any] | None) -> tuple[str, str | None]:
    """Size and class in the claim template: as the spec writes them, unless a StatefulSet is there that has others."""
    claim = state.volume_claim_template
    text = claim.resources.requests.storage
    templates = mappings(mapping(mapping(live).get("spec")).get("volumeClaimTemplates"))
    found = next((one for one in templates if mapping(one.get("metadata")).get("name") == state.claim_name), None)
    if found is None:
        return text, claim.storage_class_name
    spec = mapping(found.get("spec"))
    there = str(mapping(mapping(spec.get("resources")).get("requests")).get("storage", text))
    return text if parse_quantity(there) == parse_quantity(text) else there, spec.get("storageClassName")


def _template(app: StreamApp, installation: Installation, accepted: str) -> Manifest:
    template = deepcopy(app.spec.template)
    metadata = mapping(template.get("metadata"))
    template["metadata"] = {**metadata, "labels": {**mapping(metadata.get("labels")), APP_LABEL: app.metadata.name}}
    # Without its last words, the status can tell of a container that crashed only the exit code.
    _container_of(template["spec"], app).setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
    if app.spec.agent.enabled and accepted:
        image, policy = installation.agent_image, installation.agent_pull_policy
        inject(template["spec"], app, accepted, image=image, pull_policy=policy)
    if app.spec.state is not None:
        _add_state(template["spec"], app, app.spec.state, installation)
    if not _shows_container(template["spec"], app):
        annotations = {**mapping(metadata.get("annotations")), CONTAINER: app.spec.application_container["name"]}
        template["metadata"]["annotations"] = annotations
    return template


def _shows_container(pod: Manifest, app: StreamApp) -> bool:
    """Whether a pod shows for ever which container is the application's: by the agent, or by the mount of its volume.

    The StreamApp can name another one later, and members of live containers must not count as those of that one.
    """
    if len(pod["containers"]) == 1 or any(one.get("name") == AGENT for one in mappings(pod.get("initContainers"))):
        return True
    claim = None if app.spec.state is None else app.spec.state.claim_name
    mounts = [{mount.get("name") for mount in mappings(one.get("volumeMounts"))} for one in pod["containers"]]
    return claim is not None and sum(claim in names for names in mounts) == 1


def _add_state(pod: Manifest, app: StreamApp, state: State, installation: Installation) -> None:
    """Mount the volume, and seed it as the last thing before the application starts: the age of state counts then.

    Init containers of the user can take days, or write files that hide the age of the state; where there are any, the
    volume is seeded before them, too.
    """
    container = _container_of(pod, app)
    mounts = container.get("volumeMounts") or []
    if not any(mount.get("name") == state.claim_name for mount in mappings(mounts)):
        container["volumeMounts"] = [*mounts, {"name": state.claim_name, "mountPath": state.mount_path}]
    seeding = seeder(app, state, image=installation.seed_image, pull_policy=installation.seed_pull_policy)
    first = [{**seeding, "name": FIRST_SEEDER}] if app.spec.template["spec"].get("initContainers") else []
    pod["initContainers"] = [*first, *(pod.get("initContainers") or []), seeding]


def _container_of(pod: Manifest, app: StreamApp) -> dict[str, Any]:
    """The application's container in a copy of the template."""
    name = app.spec.application_container["name"]
    container: dict[str, Any] = next(one for one in pod["containers"] if one["name"] == name)
    return container


def _template_hash(app: StreamApp, installation: Installation, live: Mapping[str, Any]) -> str:
    """Hash the template, or give the last hash: each pass asks, and making the template costs a tenth of a pass."""
    uid = app.metadata.uid
    accepted = (installation.accepted(uid) or accepted_by(live)) if app.spec.agent.enabled else ""
    made_of = app.spec, accepted, None if app.spec.state is None else _storage(app.spec.state, live)
    known = installation.hashes.get(uid)
    # The very spec, which stays while nobody changes it: in an equal one `true` can stand where `1` was a mistake.
    if known is not None and known[0] is app.spec and known[1:3] == made_of[1:]:
        return known[3]
    made = str(statefulset(app, installation, live)["metadata"]["annotations"][TEMPLATE_HASH])
    while len(installation.hashes) >= MOST_HASHES:
        del installation.hashes[next(iter(installation.hashes))]
    installation.hashes[uid] = *made_of, made
    return made


def _hash(spec: Manifest) -> str:
    """Of what is written, images of our own apart: a newer operator must not restart every pod for them."""
    hashed = deepcopy(spec)
    for container in hashed["template"]["spec"].get("initContainers") or []:
        if mapping(container).get("name") in OWN_INIT_CONTAINERS:
            del container["image"], container["imagePullPolicy"]
    text = json.dumps(hashed, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
