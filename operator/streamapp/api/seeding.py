"""The init container that prepares an ordinal's volume before its application starts (`operator/images/seed`).

It gives the state directory its process file, if there is none, and removes state that lay unused for too long. Called
by `manifests`. The program knows nothing about StreamApps: everything it is told stands in its arguments.
"""

from typing import Any

from streamapp.api.conflicts import SEEDER
from streamapp.api.durations import format_duration
from streamapp.api.names import POD_INDEX_LABEL
from streamapp.api.reading import StreamApp
from streamapp.api.template import mapping
from streamapp.api.v1alpha1.spec import State
from streamapp.core.identity import Ordinal
from streamapp.core.seeding import seeded_process_id

_RESOURCES = {"cpu": "100m", "memory": "64Mi"}
"""Requests and limits alike: a pod whose containers are all guaranteed stays guaranteed."""

_REPORT = "/dev/termination-log"
"""What the program found and did, or why it could not, is thereby part of the pod's status."""
_ORDINAL = "ORDINAL"
_LABEL = f"metadata.labels['{POD_INDEX_LABEL}']"


def seeder(app: StreamApp, state: State, *, image: str, pull_policy: str) -> dict[str, Any]:
    """The container, for any ordinal: it learns its own from Kubernetes."""
    return {
        "name": SEEDER,
        "image": image,
        "imagePullPolicy": pull_policy,
        "args": [
            f"--state-dir={_literally(state.directory)}",
            f"--application-id={app.spec.application_id}",
            f"--ordinal=$({_ORDINAL})",
            f"--id-suffix={_suffix(app.metadata.uid)}",
            f"--max-age={format_duration(state.max_age)}",
            f"--report={_REPORT}",
        ],
        "env": [{"name": _ORDINAL, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": _LABEL}}}],
        "resources": {"requests": dict(_RESOURCES), "limits": dict(_RESOURCES)},
        "securityContext": _security(app),
        "terminationMessagePath": _REPORT,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": state.claim_name, "mountPath": state.mount_path}],
    }


def _security(app: StreamApp) -> dict[str, Any]:
    """The application's own user and group, since it must be able to write what is prepared here; and no rights.

    Where nobody names a user, the application's image does, which cannot be seen from here; the seeder then keeps the
    user of its own image and shares files by the pod's `fsGroup`.
    """
    context: dict[str, Any] = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    of_pod = mapping(app.spec.template["spec"].get("securityContext"))
    of_container = mapping(app.spec.application_container.get("securityContext"))
    context |= {key: of_container[key] for key in ("runAsUser", "runAsGroup", "seLinuxOptions") if key in of_container}
    user = of_container.get("runAsUser", of_pod.get("runAsUser"))
    return {**context, "runAsNonRoot": user != 0}


def _suffix(uid: str) -> str:
    """What all process IDs of the StreamApp have in common, after the ordinal."""
    _, _, suffix = str(seeded_process_id(uid, Ordinal(0))).partition("-")
    return suffix


def _literally(text: str) -> str:
    """Keep the kubelet from putting variables in place of `$(…)`."""
    return text.replace("$", "$$")
