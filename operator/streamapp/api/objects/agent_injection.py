"""What brings the agent into a pod: an init container with its jar, a volume, and variables of the application.

Called by `manifests`. The variables are those of `agent/protocol/README.md`. A value that the template states for the
variable with `-javaagent` is kept; one that cannot be seen is refused by `conflicts`. A readiness probe is added where
there is none; no probe of the user's is touched.
"""

from collections.abc import Mapping
from typing import Any

from streamapp.api.objects.init_containers import REPORT, init_container
from streamapp.api.v1alpha1.pod_template import mapping, mappings
from streamapp.api.validation.conflicts import AGENT, AGENT_FOLDER, AGENT_TLS, AGENT_TLS_FOLDER, AGENT_VARIABLES
from streamapp.api.validation.parse import StreamApp

JAR = f"{AGENT_FOLDER}/streamapp-agent.jar"
_OPTION = f"-javaagent:{JAR}"
_ACCEPTED = f"{AGENT_VARIABLES}TOKEN_SHA256"
_ROOM = "64Mi"
"""Of the volume: the jar while it is written anew has to fit twice."""


def inject(pod: dict[str, Any], app: StreamApp, accepted: str, *, image: str, pull_policy: str) -> None:
    """Add everything to the pod of a template.

    Args:
        pod: Its spec, which is changed.
        app: Whose pod it is.
        accepted: The hashes of the tokens that the agent accepts, with commas between them.
        image: Of the init container.
        pull_policy: Of that image.
    """
    name = app.spec.application_container["name"]
    container = next(one for one in pod["containers"] if one["name"] == name)
    container["env"] = _environment(container.get("env") or [], app, accepted)
    container["ports"] = [
        *(container.get("ports") or []),
        {"name": AGENT, "containerPort": app.spec.agent.port, "protocol": "TCP"},
    ]
    if not container.get("readinessProbe"):
        container["readinessProbe"] = _readiness(app)
    mount = {"name": AGENT, "mountPath": AGENT_FOLDER}
    tls_volumes, tls_mounts = _certificate(app)
    container["volumeMounts"] = [*(container.get("volumeMounts") or []), {**mount, "readOnly": True}, *tls_mounts]
    jar_volume = {"name": AGENT, "emptyDir": {"sizeLimit": _ROOM}}
    pod["volumes"] = [*(pod.get("volumes") or []), jar_volume, *tls_volumes]
    bringer = init_container(
        app, name=AGENT, image=image, pull_policy=pull_policy, args=[f"--to={JAR}", f"--report={REPORT}"], mount=mount
    )
    pod["initContainers"] = [bringer, *(pod.get("initContainers") or [])]


def _certificate(app: StreamApp) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The volume with the agent's certificate, and its mount; both empty where agents serve plain HTTP.

    The volume is optional: a pod whose Secret is missing must start. Its agent then says that it has no certificate.
    """
    tls = app.spec.agent.tls
    if tls is None:
        return [], []
    items = [{"key": key, "path": key} for key in ("tls.crt", "tls.key")]
    secret = {"secretName": tls.secret_ref.name, "optional": True, "items": items}
    mount = {"name": AGENT_TLS, "mountPath": AGENT_TLS_FOLDER, "readOnly": True}
    return [{"name": AGENT_TLS, "secret": secret}], [mount]


def _readiness(app: StreamApp) -> dict[str, Any]:
    """Ready when the agent says so: an instance runs, and no task restores.

    Autoscalers set the CPU time of pods aside that were never ready, so that restoring does not look like load. A pod
    that takes a task over at once is not to blink: it takes three answers to be unready, and one to be ready again.
    """
    scheme = "HTTP" if app.spec.agent.tls is None else "HTTPS"
    asked = {"path": "/healthz", "port": app.spec.agent.port, "scheme": scheme}
    return {"httpGet": asked, "periodSeconds": 5, "timeoutSeconds": 2, "successThreshold": 1, "failureThreshold": 3}


def accepted_by(live: Mapping[str, Any] | None) -> str:
    """The hashes that stand in the template of a StatefulSet as it is; empty where it has no agent.

    The agent's port shows the container that has the agent: the StreamApp can name another container by now.
    """
    pod = mapping(mapping(mapping(mapping(live).get("spec")).get("template")).get("spec"))
    for container in mappings(pod.get("containers")):
        if any(port.get("name") == AGENT for port in mappings(container.get("ports"))):
            found = [one.get("value") for one in mappings(container.get("env")) if one.get("name") == _ACCEPTED]
            return str(found[0] or "") if found else ""
    return ""


def _environment(stated: list[Any], app: StreamApp, accepted: str) -> list[Any]:
    """The user's variables in their places, `-javaagent` added to one of them, and the agent's own."""
    agent = app.spec.agent
    variable = agent.inject_via.value
    is_stated = any(mapping(one).get("name") == variable for one in stated)
    users = [_with_option(one) if mapping(one).get("name") == variable else one for one in stated]
    uid = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}
    tls = [] if agent.tls is None else [{"name": f"{AGENT_VARIABLES}TLS_FOLDER", "value": AGENT_TLS_FOLDER}]
    return [
        *users,
        *([] if is_stated else [{"name": variable, "value": _OPTION}]),
        {"name": f"{AGENT_VARIABLES}PORT", "value": str(agent.port)},
        {"name": _ACCEPTED, "value": accepted},
        {"name": f"{AGENT_VARIABLES}POD_UID", "valueFrom": uid},
        {"name": f"{AGENT_VARIABLES}DEFAULTS", "value": ",".join(sorted(one.value for one in agent.defaults))},
        *tls,
    ]


def _with_option(variable: Mapping[str, Any]) -> dict[str, Any]:
    before = str(variable.get("value") or "").rstrip()
    return {**variable, "value": f"{before} {_OPTION}".lstrip()}
