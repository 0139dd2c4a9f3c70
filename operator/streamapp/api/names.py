"""The names that the operator writes on Kubernetes objects and reads from them. They are API and do not change.

Read by everything that builds or reads an object, by the chart's tests and by the documentation.
"""

from typing import Final

GROUP: Final = "streamapp.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "StreamApp"
PLURAL: Final = "streamapps"

# Labels.

APP_LABEL: Final = f"{GROUP}/app"
"""The StreamApp's name, on everything that belongs to it; the one label that selects its pods."""
OPERATOR_LABEL: Final = f"{GROUP}/operator"
"""Which installation of the operator works on a StatefulSet; a user can set it on a StreamApp to choose one."""
ORDINAL_LABEL: Final = f"{GROUP}/ordinal"
"""On a volume claim, which Kubernetes itself does not label so."""
POD_INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
"""Kubernetes' own, on a pod."""
POD_NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
"""Kubernetes' own, on a pod of a StatefulSet."""
ZONE: Final = "topology.kubernetes.io/zone"
"""Kubernetes' own, on a node, and from 1.35 on by default on a pod, too."""
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "streamapp-operator"

# Annotations that the operator writes.

HOLD_RECORD: Final = f"{GROUP}/hold-record"
"""On the StatefulSet: `core.record_text`."""
HOLD_GENERATION: Final = f"{GROUP}/hold-generation"
"""On the StatefulSet, beside its hold record: `core.facts.hold_annotation.encode_generation`."""
FENCE: Final = f"{GROUP}/fence"
"""On the StatefulSet while its hold record cannot be read: the epoch of the process that took over last."""
TEMPLATE_HASH: Final = f"{GROUP}/template-hash"
"""On the StatefulSet: of the pod template that was written last."""
CREATION: Final = f"{GROUP}/creation"
"""On the StatefulSet: which of the tries to create it made it (`kube.objects.statefulsets.create`)."""
CONTAINER: Final = f"{GROUP}/container"
"""On a pod of several containers, where nothing else shows it: the application's container in its own template."""
PROCESS_ID: Final = f"{GROUP}/process-id"
"""On a volume claim: the ID of the Kafka Streams process whose state it holds."""
APPLICATION_ID: Final = f"{GROUP}/application-id"
"""On a volume claim: whose state it holds."""

KEPT_STATE: Final = f"{GROUP}/kept-state"
"""On a volume claim: how far each task's state was when the last pod with this volume was removed
(`kube.objects.kept_states`)."""
LEASE: Final = f"{GROUP}/lease"
"""On a PodDisruptionBudget that follows coverage: transitions of the Lease under which it was last written."""

# Annotations that the user writes on the StreamApp.

HOLD: Final = f"{GROUP}/hold"
"""`<reason>`: no scale-down, whatever coverage says."""
OVERRIDE: Final = f"{GROUP}/override"
"""`<hold ID> <reason>`: that one hold need not wait for coverage."""
RESTART: Final = f"{GROUP}/restart"
"""`<pod UID>` or `<pod UID> new-volume`, several separated by commas: restart those pods once they are covered."""
NEW_VOLUME: Final = "new-volume"
"""The pod's claim is deleted by the user, and the restart waits for that."""

# Annotations that `kubectl streamapp migrate` writes on the StreamApp.

MIGRATION: Final = f"{GROUP}/migration"
"""There while the application changes its group protocol: how far that is, and what was before
(`streamapp.cli.model.migration_record`). The operator reads only that it is there: all pods stop together then."""

# Annotations that `kubectl streamapp adopt` writes on the StreamApp.

ADOPTED_FROM: Final = f"{GROUP}/adopted-from"
"""What the StatefulSet was before, for the way back: `streamapp.cli.adoption.origin`."""
ADOPTION_PAUSE: Final = f"{GROUP}/adoption-pause"
"""There while `adopt` has the StreamApp paused, to see the operator answer: a pause of the user has none."""


def selector_of(name: str) -> str:
    """Selects all pods of a StreamApp, leaving ones included: an autoscaler must see the load they carry."""
    return f"{APP_LABEL}={name}"


def claim_of(volume: str, name: str, ordinal: int) -> str:
    """The name that a StatefulSet gives to the claim of one ordinal."""
    return f"{volume}-{name}-{ordinal}"
