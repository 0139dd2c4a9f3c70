"""What a client asks an API server before anything else, and the file that leads it there."""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from streamapp.kube.client.kinds import Kind
from tests.kube.field_ownership import Json


def discovery(kinds: Iterable[Kind]) -> dict[str, Json]:
    """Give the answers of a server with these kinds, by path."""
    by_version: dict[str, list[Kind]] = defaultdict(list)
    for kind in kinds:
        by_version[kind.api_version].append(kind)
    groups = {kind.group: kind for kind in kinds if kind.group}
    return {
        "/version": {"major": "1", "minor": "36"},
        "/api": {"versions": ["v1"]},
        "/apis": {"groups": [_group(kind) for kind in groups.values()]},
        **{
            f"/apis/{version}" if "/" in version else f"/api/{version}": {"resources": [*map(_resource, members)]}
            for version, members in by_version.items()
        },
    }


def write_kubeconfig(path: Path, url: str) -> None:
    """Write how a server at this address is reached."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "fake", "cluster": {"server": url}}],
        "users": [{"name": "operator", "user": {"token": "a-token"}}],
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "operator"}}],
        "current-context": "fake",
    }
    path.write_text(json.dumps(config))


def _group(kind: Kind) -> Json:
    version = {"groupVersion": kind.api_version, "version": kind.version}
    return {"name": kind.group, "versions": [version], "preferredVersion": version}


def _resource(kind: Kind) -> Json:
    one = {"name": kind.plural, "singularName": kind.name.lower(), "kind": kind.name, "namespaced": True}
    return {**one, "verbs": ["get", "list", "watch", "patch"]}
