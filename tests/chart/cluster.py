"""A cluster as far as Helm looks at one while it renders: its version, what it serves, and the Secrets of a namespace.

A real one is the lab's; this one shows what the chart makes of what it looks up, without root and in a second.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Json = dict[str, Any]

_KINDS: Mapping[str, tuple[str, ...]] = {
    "v1": ("Secret", "ConfigMap", "Service", "ServiceAccount", "Pod"),
    "apps/v1": ("Deployment",),
    "policy/v1": ("PodDisruptionBudget",),
    "rbac.authorization.k8s.io/v1": ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
    "admissionregistration.k8s.io/v1": ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
    "apiextensions.k8s.io/v1": ("CustomResourceDefinition",),
}
"""Of the chart as it is by default: Helm asks whether each is served."""
_OF_NO_NAMESPACE = ("ClusterRole", "ValidatingAdmission", "CustomResource")


@contextmanager
def cluster(folder: Path, namespace: str, secrets: Mapping[str, Json] | None) -> Iterator[Path]:
    """Serve a cluster with these Secrets, by name, and give the path of its kubeconfig.

    Args:
        folder: For the kubeconfig.
        namespace: Of the Secrets.
        secrets: The `data` of each; None where Helm has no right to see any.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(namespace, secrets))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = folder / "kubeconfig"
    config.write_text(json.dumps(_kubeconfig(f"http://127.0.0.1:{server.server_address[1]}")))
    try:
        yield config
    finally:
        server.shutdown()
        server.server_close()


def _handler(namespace: str, secrets: Mapping[str, Json] | None) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = _answer(self.path.partition("?")[0], namespace, secrets)
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class calls it so)
            """Say nothing."""

    return Handler


def _answer(path: str, namespace: str, secrets: Mapping[str, Json] | None) -> tuple[int, Json]:
    listed = f"/api/v1/namespaces/{namespace}/secrets"
    if path in _discovery():
        return 200, _discovery()[path]
    if secrets is None and path.startswith(listed):
        return 403, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}
    secrets = secrets or {}
    if path == listed:
        items = [_secret(namespace, name, data) for name, data in secrets.items()]
        return 200, {"kind": "SecretList", "apiVersion": "v1", "metadata": {}, "items": items}
    name = path.removeprefix(f"{listed}/")
    if path.startswith(f"{listed}/") and name in secrets:
        return 200, _secret(namespace, name, secrets[name])
    return 404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}


@cache
def _discovery() -> dict[str, Json]:
    """What Helm asks before it looks anything up."""
    of_groups = [version for version in _KINDS if "/" in version]
    groups = [
        {
            "name": version.partition("/")[0],
            "versions": [{"groupVersion": version, "version": "v1"}],
            "preferredVersion": {"groupVersion": version, "version": "v1"},
        }
        for version in of_groups
    ]
    return {
        "/version": {"major": "1", "minor": "33", "gitVersion": "v1.33.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
        **{
            f"/{'apis' if '/' in version else 'api'}/{version}": {
                "kind": "APIResourceList",
                "groupVersion": version,
                "resources": [_resource(kind) for kind in kinds],
            }
            for version, kinds in _KINDS.items()
        },
    }


def _resource(kind: str) -> Json:
    plural = f"{kind[:-1]}ies" if kind.endswith("Policy") else f"{kind}s"
    is_namespaced = not kind.startswith(_OF_NO_NAMESPACE)
    return {
        "name": plural.lower(),
        "singularName": kind.lower(),
        "namespaced": is_namespaced,
        "kind": kind,
        "verbs": ["get", "list"],
    }


def _secret(namespace: str, name: str, data: Json) -> Json:
    return {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": name, "namespace": namespace}, "data": data}


def _kubeconfig(server: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "users": [{"name": "it", "user": {}}],
        "current-context": "it",
    }
