"""Everything that was read for one look at an adoption, and what follows from it without any judgement. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamapp.api.names import APP_LABEL, PROCESS_ID
from streamapp.api.v1alpha1.pod_template import mapping, mappings
from streamapp.cli.adoption.origin import Origin, origin_on
from streamapp.cli.errors import Unread
from streamapp.kube.objects.from_json import is_controlled_by

Json = dict[str, Any]

_ORDINAL = re.compile(r"-(0|[1-9][0-9]*)$", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The objects of one name, and those around them."""

    namespace: str
    name: str
    statefulset: Json | None
    streamapp: Json | None
    pods: tuple[Json, ...]
    """Those that have a name of the StatefulSet, by ordinal, whoever owns them."""
    claims: tuple[Json, ...]
    """Those that have a name of one of its volume claims."""
    service: Json | None
    """The Service of the same name."""
    budgets: tuple[Json, ...]
    """All PodDisruptionBudgets of the namespace."""
    autoscalers: tuple[Json, ...] | Unread
    """All HorizontalPodAutoscalers of the namespace."""
    scaled_objects: tuple[Json, ...] | Unread
    """All ScaledObjects of KEDA in the namespace; empty where the API server does not know them."""
    vertical_autoscalers: tuple[Json, ...] | Unread
    """All VerticalPodAutoscalers of the namespace, in the same way."""
    missing_rights: tuple[str, ...] = ()
    """`patch pods`: what the user has no right to do, of what is still to do."""

    @property
    def title(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_adopted(self) -> bool:
        """Whether the StreamApp controls the StatefulSet."""
        return self.statefulset is not None and is_controlled_by(self.statefulset, uid_of(self.streamapp))

    @property
    def origin(self) -> Origin | None:
        """What the StatefulSet was, as recorded on the StreamApp."""
        return None if self.streamapp is None else origin_on(self.streamapp)

    @property
    def has_labelled_template(self) -> bool:
        """Whether pods that the StatefulSet makes have the operator's label; an adoption has begun then."""
        return self.pod_labels.get(APP_LABEL) == self.name

    @property
    def unrecorded_claims(self) -> list[str]:
        """The volume claims of which the operator has not yet recorded whose process they belong to."""
        return [claim["metadata"]["name"] for claim in self.claims if PROCESS_ID not in annotations_of(claim)]

    @property
    def template(self) -> Mapping[str, Any]:
        """The pod template of the StatefulSet."""
        return mapping(mapping(mapping(self.statefulset).get("spec")).get("template"))

    @property
    def pod_labels(self) -> Mapping[str, Any]:
        """The labels that its pods get."""
        return mapping(mapping(self.template.get("metadata")).get("labels"))

    @property
    def replicas(self) -> int:
        """Of the StatefulSet; 1 is Kubernetes' own default."""
        found = mapping(mapping(self.statefulset).get("spec")).get("replicas")
        return 1 if found is None else int(found)

    @property
    def missing_pods(self) -> list[str]:
        """The names of pods that the StatefulSet should have and that are not there."""
        there = {ordinal_of(pod) for pod in self.pods}
        return [f"{self.name}-{ordinal}" for ordinal in range(self.replicas) if ordinal not in there]

    @property
    def unready_pods(self) -> list[str]:
        """The names of pods that are not ready, or that go."""
        return [pod["metadata"]["name"] for pod in self.pods if not is_ready(pod)]

    @property
    def claims_deleted_when(self) -> list[str]:
        """`whenScaled`, `whenDeleted`: when Kubernetes would delete claims of the StatefulSet."""
        spec = mapping(mapping(self.statefulset).get("spec"))
        retention = mapping(spec.get("persistentVolumeClaimRetentionPolicy"))
        return sorted(when for when, policy in retention.items() if policy != "Retain")

    @property
    def least_replicas(self) -> int:
        """The replicas below which a pod or its desired replicas would be lost."""
        desired = mapping(mapping(self.streamapp).get("spec")).get("replicas", 1)
        return max([int(desired), *(ordinal_of(pod) + 1 for pod in self.pods)])


def uid_of(body: Mapping[str, Any] | None) -> str:
    """The UID of an object; empty where there is none."""
    return str(mapping(mapping(body).get("metadata")).get("uid") or "")


def labels_of(body: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The labels of an object."""
    return mapping(mapping(mapping(body).get("metadata")).get("labels"))


def annotations_of(body: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The annotations of an object."""
    return mapping(mapping(mapping(body).get("metadata")).get("annotations"))


def owners_of(body: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """The owners of an object."""
    return mappings(mapping(mapping(body).get("metadata")).get("ownerReferences"))


def is_observed(body: Mapping[str, Any], generation: int | None = None) -> bool:
    """Whether the controller of an object has looked at this generation of it, or else at the present one."""
    wanted = int(body["metadata"].get("generation") or 0) if generation is None else generation
    return int(mapping(body.get("status")).get("observedGeneration") or 0) >= wanted


def is_going(body: Mapping[str, Any] | None) -> bool:
    """Whether an object is being deleted."""
    return "deletionTimestamp" in mapping(mapping(body).get("metadata"))


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is ready and stays."""
    conditions = mappings(mapping(pod.get("status")).get("conditions"))
    return not is_going(pod) and any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def has_app_label(body: Mapping[str, Any], name: str) -> bool:
    """Whether an object has the label by which the operator selects the pods of a StreamApp."""
    return labels_of(body).get(APP_LABEL) == name


def ordinal_of(body: Mapping[str, Any]) -> int:
    """The number at the end of a name; the name has one."""
    found = _ORDINAL.search(str(body["metadata"]["name"]))
    if found is None:
        raise ValueError(f"{body['metadata']['name']}: its name does not end in an ordinal")
    return int(found[1])


def of_statefulset(name: str, bodies: Sequence[Json]) -> tuple[Json, ...]:
    """Those that have the name of a pod, or of a volume claim, of a StatefulSet, by ordinal."""
    found = [one for one in bodies if _ORDINAL.sub("", one["metadata"]["name"]) == name]
    return tuple(sorted(found, key=ordinal_of))


def claim_templates(statefulset: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """The volume claim templates of a StatefulSet."""
    return mappings(mapping(mapping(statefulset).get("spec")).get("volumeClaimTemplates"))


def selects(selector: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """Whether a label selector (`matchLabels`, `matchExpressions`) matches these labels."""
    wanted = mapping(selector.get("matchLabels"))
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_fits(one, labels) for one in mappings(selector.get("matchExpressions")))


def _fits(expression: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    key, values = str(expression.get("key")), expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return True  # what is not understood here can match
