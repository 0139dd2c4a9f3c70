"""Writes the bundle by which the Operator Lifecycle Manager (OLM) installs the operator, from the rendered chart.

Called by `release.build`, if the maker publishes the images. Roles, Deployment and definition are those that Helm
renders; an object that the bundle has no place for is an error, so that the two cannot differ without a notice.
"""

import base64
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import yaml

from lab.errors import LabError

Json = dict[str, Any]

PACKAGE = "streamapp-operator"
CHANNEL = "alpha"
VALUES: Json = {
    "crds": {"enabled": True, "keep": False},
    "rbac": {"aggregate": False, "diagnosis": False},
    "agent": {"createKey": False},
    "insight": {"write": False},
    "uninstall": {"prepare": False},
    "admission": {part: {"enabled": False} for part in ("guard", "operator", "templates")},
    "monitoring": {part: {"create": "never"} for part in ("podMonitor", "rules", "dashboard")},
}
"""Of the chart, for what OLM installs. OLM makes roles for users itself, and takes no policies, hooks or jobs."""
PLAIN = ("Service", "PodDisruptionBudget", "CustomResourceDefinition")
"""Kinds that a bundle has as they are."""
BY_OLM = ("ServiceAccount", "ClusterRoleBinding", "RoleBinding", "Pod")
"""Kinds that OLM makes from the ClusterServiceVersion, and the pod of `helm test`."""
_HELMS = ("helm.sh/chart", "app.kubernetes.io/managed-by")
_MODES = {"OwnNamespace": False, "SingleNamespace": False, "MultiNamespace": False, "AllNamespaces": True}
_TEXT = """The operator holds each scale-down of a Kafka Streams application until every stateful task has a caught-up
copy on a remaining pod. Scale-ups go at once.

Before the first application, create the key of the agents in the namespace of the operator:

    openssl rand -hex 32 | kubectl create secret generic streamapp-agent-key --from-file=keys=/dev/stdin

A bundle cannot have ValidatingAdmissionPolicies. Without them, whoever can scale a StatefulSet can remove its pods
without a check. The chart has these policies, and `helm template` prints them for `kubectl apply`.
"""
_ANNOTATIONS = {
    "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
    "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
    "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
    "operators.operatorframework.io.bundle.package.v1": PACKAGE,
    "operators.operatorframework.io.bundle.channels.v1": CHANNEL,
    "operators.operatorframework.io.bundle.channel.default.v1": CHANNEL,
}


def bundle(chart: Json, objects: Iterable[Json], images: Mapping[str, str], icon: bytes, epoch: int) -> dict[str, str]:
    """Give the text of each file by its path.

    Args:
        chart: What Chart.yaml has.
        objects: What Helm renders with `VALUES`.
        images: With registry and digest, by the names `operator`, `seed` and `agent`.
        icon: SVG.
        epoch: When the commit was made, in seconds since 1970.
    """
    by_kind: dict[str, list[Json]] = {}
    for each in objects:
        by_kind.setdefault(each["kind"], []).append(each)
    strange = set(by_kind) - {*PLAIN, *BY_OLM, "Deployment", "ClusterRole", "Role"}
    if strange:
        raise LabError(
            f"bundle: the chart renders {', '.join(sorted(strange))}",
            "the bundle has no place for it",
            "add the kind to release/listings/olm.py, or switch it off in VALUES there",
        )
    plain = {name: one for kind in PLAIN for one in by_kind[kind] for name in [f"manifests/{_file(one)}"]}
    files = {name: _yaml(_without_helm(one)) for name, one in plain.items()}
    files[f"manifests/{PACKAGE}.clusterserviceversion.yaml"] = _yaml(_version(chart, by_kind, images, icon, epoch))
    files["metadata/annotations.yaml"] = _yaml({"annotations": _ANNOTATIONS})
    labels = "".join(f"LABEL {name}={value}\n" for name, value in _ANNOTATIONS.items())
    files["bundle.Dockerfile"] = f"FROM scratch\n{labels}COPY manifests /manifests/\nCOPY metadata /metadata/\n"
    return files


def _version(
    chart: Json, objects: Mapping[str, list[Json]], images: Mapping[str, str], icon: bytes, epoch: int
) -> Json:
    """Give the ClusterServiceVersion."""
    metadata = {
        "name": f"{PACKAGE}.v{chart['version']}",
        "namespace": "placeholder",
        "annotations": _shown(chart, images, epoch),
        "labels": {f"operatorframework.io/arch.{processor}": "supported" for processor in ("amd64", "arm64")},
    }
    spec = {
        "displayName": "streamapp-operator",
        "description": _TEXT,
        "version": chart["version"],
        "maturity": "alpha",
        "minKubeVersion": chart["kubeVersion"].removeprefix(">=").partition("-")[0],
        "keywords": chart["keywords"],
        "provider": {"name": "The streamapp-operator authors"},
        "icon": [{"base64data": base64.b64encode(icon).decode(), "mediatype": "image/svg+xml"}],
        "installModes": [{"type": mode, "supported": supported} for mode, supported in _MODES.items()],
        "customresourcedefinitions": {"owned": [_owned(chart)]},
        "relatedImages": [{"name": name, "image": image} for name, image in sorted(images.items())],
        "install": {"strategy": "deployment", "spec": _install(objects)},
    }
    head = {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion"}
    return {**head, "metadata": metadata, "spec": spec}


def _shown(chart: Json, images: Mapping[str, str], epoch: int) -> dict[str, str]:
    """What a catalogue shows; examples and capabilities are those that Artifact Hub shows of the chart."""
    examples = yaml.safe_load(chart["annotations"]["artifacthub.io/crdsExamples"])
    return {
        "alm-examples": json.dumps(examples, indent=1),
        "capabilities": chart["annotations"]["artifacthub.io/operatorCapabilities"],
        "categories": "Streaming & Messaging",
        "containerImage": images["operator"],
        "createdAt": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "description": chart["description"],
    }


def _owned(chart: Json) -> Json:
    (shown,) = yaml.safe_load(chart["annotations"]["artifacthub.io/crds"])
    return {name: shown[name] for name in ("name", "version", "kind", "displayName", "description")}


def _install(objects: Mapping[str, list[Json]]) -> Json:
    """Deployment and rights; a Role gets each namespace that the operator serves, which is all of them."""
    (deployment,) = objects["Deployment"]
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]

    def rights(kind: str) -> list[Json]:
        rules = [rule for role in objects[kind] for rule in role["rules"]]
        return [{"serviceAccountName": account, "rules": rules}]

    deployed = _without_helm(deployment)
    one = {"name": deployed["metadata"]["name"], "label": deployed["metadata"]["labels"], "spec": deployed["spec"]}
    return {"clusterPermissions": rights("ClusterRole"), "permissions": rights("Role"), "deployments": [one]}


def _without_helm(one: Json) -> Json:
    """A copy without the namespace of the rendering and without what names Helm."""
    copy = json.loads(json.dumps(one))
    copy["metadata"].pop("namespace", None)
    for labelled in (copy["metadata"], copy.get("spec", {}).get("template", {}).get("metadata", {})):
        for name in _HELMS:
            labelled.get("labels", {}).pop(name, None)
    return dict(copy)


def _file(one: Json) -> str:
    return f"{one['metadata']['name']}_{one['kind'].lower()}.yaml"


def _yaml(value: Json) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)
