"""The next write of an adoption, or what it waits for: `next_step(facts, progress, choices)`. Pure.

It depends on the objects alone, so a run that was interrupted at any point is continued by the next one. The order is
what makes that safe:

1. The StreamApp comes first. While a foreign StatefulSet has its name, the operator changes nothing for it, but says
   whether the spec is valid and the brokers can be reached.
2. The StatefulSet gets `OnDelete` and the operator's label in one write, so that no pod restarts and each new pod has
   the label.
3. The pods get the label, live.
4. The StatefulSet is deleted without its pods, in exactly the version that was checked.
5. The operator finds no StatefulSet, and pods of that name: it creates one with at least as many replicas, and
   Kubernetes gives the pods to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamapp.api.names import ADOPTED_FROM, ADOPTION_PAUSE, APP_LABEL
from streamapp.api.objects.manifests import owner_reference
from streamapp.api.v1alpha1.pod_template import mapping, mappings
from streamapp.cli.adoption import manifest
from streamapp.cli.adoption.facts import (
    Facts,
    has_app_label,
    is_going,
    is_observed,
    labels_of,
    owners_of,
    uid_of,
)
from streamapp.cli.adoption.manifest import Choices
from streamapp.cli.adoption.origin import Origin
from streamapp.kube.objects.from_json import is_controlled_by

Json = dict[str, Any]
FOREIGN = "ForeignStatefulSet"


@dataclass(frozen=True, slots=True)
class CreateStreamApp:
    """Create the StreamApp."""

    body: Json
    says = "creates the StreamApp; the operator does not act on it while the StatefulSet is another's"


@dataclass(frozen=True, slots=True)
class Patch:
    """Lay fields over exactly this version of an object."""

    kind: str
    """`StreamApp`, `StatefulSet`, `Pod`, `Service`, `PodDisruptionBudget`."""
    body: Json
    """The object as it was read."""
    patch: Json
    says: str
    asks: bool = False
    """Whether the operator must answer the generation that this makes."""


@dataclass(frozen=True, slots=True)
class OrphanPods:
    """Delete exactly this version of the StatefulSet, and leave its pods."""

    statefulset: Json
    says = "deletes the StatefulSet without its pods; they go on running"


@dataclass(frozen=True, slots=True)
class CreateStatefulSet:
    """Create the StatefulSet of the way back."""

    body: Json
    says = "creates the StatefulSet that takes the pods back"


@dataclass(frozen=True, slots=True)
class DeleteStreamApp:
    """Delete exactly this version of the StreamApp, and leave what it owns."""

    streamapp: Json
    says = "deletes the StreamApp without the objects that it owned"


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again."""

    what: str
    """What must become true."""
    seconds: float
    next_step: str
    """What the user can do if it does not."""
    why: str = ""
    """What is known about it."""
    is_needed: bool = True
    """Whether it is an error if time runs out."""


@dataclass(frozen=True, slots=True)
class Stop:
    """It cannot go on."""

    why: str
    next_step: str


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do."""


LETS_PODS_GO = Wait("the StatefulSet lets its pods go", 120, "see kubectl get statefulset: a finalizer keeps it")
SEES_CHANGE = Wait("Kubernetes has seen the StatefulSet's change", 60, "check kube-controller-manager")

Step = CreateStreamApp | Patch | OrphanPods | CreateStatefulSet | DeleteStreamApp | Wait | Stop | Done


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What this run itself has done."""

    asked_generation: int | None = None
    """Of the StreamApp, made by this run: an answer to it proves an operator that runs now. None: none is made yet."""


def next_step(facts: Facts, progress: Progress, choices: Choices) -> Step:
    """Return what to do next, provided that `checks` found no obstacle where `is_checked` wants them asked."""
    statefulset, streamapp = facts.statefulset, facts.streamapp
    if streamapp is None:
        return CreateStreamApp(manifest.draft_of(facts, choices))
    if facts.is_adopted:
        return _after(facts)
    if statefulset is None:
        return _between(facts)
    return _before(facts, statefulset, streamapp, progress)


def _before(facts: Facts, statefulset: Json, streamapp: Json, progress: Progress) -> Step:
    """The StatefulSet is still another's."""
    if is_going(statefulset):
        return LETS_PODS_GO
    if facts.origin is None or facts.origin.uid != uid_of(statefulset):
        annotations = {ADOPTED_FROM: Origin.of(statefulset, facts.service).text}
        return Patch("StreamApp", streamapp, {"metadata": {"annotations": annotations}}, "records what the object was")
    if progress.asked_generation is None:
        return _ask(streamapp)
    return _answer(streamapp, progress.asked_generation) or _prepare(facts, statefulset, streamapp)


def _ask(streamapp: Json) -> Patch:
    """Change the generation: pause, and then resume. Neither has an effect while the StatefulSet is another's."""
    if mapping(streamapp.get("spec")).get("paused"):
        return Patch("StreamApp", streamapp, _paused(value=False), "resumes the StreamApp", asks=True)
    return Patch("StreamApp", streamapp, _paused(value=True), "pauses the StreamApp, to see the operator answer")


def _paused(*, value: bool) -> Json:
    return {"metadata": {"annotations": {ADOPTION_PAUSE: "true" if value else None}}, "spec": {"paused": value}}


def is_checked(facts: Facts) -> bool:
    """Whether a write can still depend on the checks: the StatefulSet that is there is another's."""
    return facts.statefulset is not None and not facts.is_adopted and not is_going(facts.statefulset)


def _answer(streamapp: Json, generation: int) -> Wait | Stop | None:
    """Whether the operator has looked at this generation, finds nothing but the StatefulSet wrong, and sees the group.

    None: it has.
    """
    stalled, kafka = _condition(streamapp, "Stalled"), _condition(streamapp, "KafkaReachable")
    look = "see kubectl streamapp doctor: an operator must run and serve this namespace; then run the command again"
    if not is_observed(streamapp, generation):
        return Wait("the operator answers", 60, look)
    if stalled.get("status") != "True" or stalled.get("reason") != FOREIGN:
        why = f"{stalled.get('reason')}: {stalled.get('message')}"
        return Stop(f"the operator does not report {FOREIGN} for the StreamApp, but {why}", "correct the StreamApp")
    if kafka.get("status") != "True":
        why = str(kafka.get("message") or "it has not said so yet")
        return Wait("the operator reaches the brokers", 60, "correct spec.kafka of the StreamApp", why)
    return None


def _prepare(facts: Facts, statefulset: Json, streamapp: Json) -> Step:
    if facts.service is not None and not is_controlled_by(facts.service, uid_of(streamapp)):
        return Patch("Service", facts.service, owner_patch(facts.service, streamapp), "gives the Service its new owner")
    if not _is_prepared(facts, statefulset):
        labels = {"metadata": {"labels": {APP_LABEL: facts.name}}}
        strategy = {"type": "OnDelete", "rollingUpdate": None}
        patch = {**labels, "spec": {"updateStrategy": strategy, "template": labels}}
        return Patch("StatefulSet", statefulset, patch, "sets OnDelete and labels the pod template; no pod restarts")
    unlabelled = label_pods(facts, {APP_LABEL: facts.name})
    if unlabelled is not None:
        return unlabelled
    if not is_observed(statefulset):
        return SEES_CHANGE
    return OrphanPods(statefulset)


def _is_prepared(facts: Facts, statefulset: Json) -> bool:
    strategy = mapping(mapping(statefulset.get("spec")).get("updateStrategy")).get("type")
    has_labels = has_app_label(statefulset, facts.name) and facts.has_labelled_template
    return strategy == "OnDelete" and has_labels


def label_pods(facts: Facts, wanted: Mapping[str, Any]) -> Patch | None:
    """Give the next pod that lacks one of these labels all that it lacks; None where no pod does."""
    for pod in facts.pods:
        lacking = {key: value for key, value in wanted.items() if labels_of(pod).get(key) != value}
        if lacking:
            return Patch("Pod", pod, {"metadata": {"labels": lacking}}, "labels the pod")
    return None


def _condition(streamapp: Mapping[str, Any] | None, kind: str) -> Mapping[str, Any]:
    """A condition of the StreamApp; empty where there is none."""
    conditions = mappings(mapping(mapping(streamapp).get("status")).get("conditions"))
    return next((one for one in conditions if one.get("type") == kind), {})


def _between(facts: Facts) -> Step:
    """No StatefulSet: the pods run, and the operator makes the new one."""
    if mapping(mapping(facts.streamapp).get("spec")).get("paused"):
        return Patch("StreamApp", facts.streamapp or {}, _paused(value=False), "resumes the StreamApp")
    stalled = _condition(facts.streamapp, "Stalled")
    is_stalled = stalled.get("status") == "True" and stalled.get("reason") != FOREIGN
    return label_pods(facts, {APP_LABEL: facts.name}) or Wait(
        "the operator creates the StatefulSet",
        120,
        "the pods run meanwhile: see kubectl streamapp doctor, then run the command again",
        str(stalled.get("message") or "") if is_stalled else "",
    )


def _after(facts: Facts) -> Step:
    uid = uid_of(facts.statefulset)
    taken = [pod for pod in facts.pods if is_controlled_by(pod, uid)]
    if len(taken) < facts.replicas or len(taken) < len(facts.pods):
        return Wait("the new StatefulSet has taken all pods", 120, "see kubectl describe statefulset")
    if mapping(mapping(facts.streamapp).get("spec")).get("state") and facts.unrecorded_claims:
        later = "see kubectl streamapp explain"
        return Wait("the operator has recorded each volume's process ID", 30, later, is_needed=False)
    return Done()


def owner_patch(body: Mapping[str, Any], streamapp: Mapping[str, Any]) -> Json:
    """What makes the StreamApp the controller of an object."""
    owner = owner_reference(streamapp["metadata"]["name"], uid_of(streamapp), blocks_deletion=False)
    return {"metadata": {"ownerReferences": [*owners_of(body), owner]}}
