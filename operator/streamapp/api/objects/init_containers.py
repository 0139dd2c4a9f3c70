"""What the init containers that the operator adds have in common: small, without rights, the application's own user.

Used by `seeding` and `injection`.
"""

from typing import Any

from streamapp.api.v1alpha1.pod_template import mapping
from streamapp.api.validation.parse import StreamApp

RESOURCES = {"cpu": "100m", "memory": "64Mi"}
"""Requests and limits alike: a pod whose containers are all guaranteed stays guaranteed."""

REPORT = "/dev/termination-log"
"""What a program found and did, or why it could not, is thereby part of the pod's status."""


def init_container(
    app: StreamApp, *, name: str, image: str, pull_policy: str, args: list[str], mount: dict[str, Any]
) -> dict[str, Any]:
    """An init container with one mount that tells its end in the pod's status."""
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": pull_policy,
        "args": args,
        "resources": {"requests": dict(RESOURCES), "limits": dict(RESOURCES)},
        "securityContext": _security(app),
        "terminationMessagePath": REPORT,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [mount],
    }


def _security(app: StreamApp) -> dict[str, Any]:
    """The application's own user and group, since it must be able to use what is prepared here; and no rights.

    Where nobody names a user, the application's image does, which cannot be seen from here; the program then keeps the
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


def literally(text: str) -> str:
    """Keep the kubelet from putting variables in place of `$(…)`."""
    return text.replace("$", "$$")
