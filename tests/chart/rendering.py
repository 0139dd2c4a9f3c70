"""Renders the chart with the real Helm, 4 and 3, and gives what comes out as objects."""

import functools
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab.build.cache import Cache
from lab.build.chart_tools import build_helm
from lab.settings import REPOSITORY, Settings

CHART = REPOSITORY / "charts" / "streamapp-operator"
NAMESPACE = "streamapp-system"
REGISTRY = "registry.example:5000/streamapp"
"""Where all images are, unless a test says otherwise: the chart has no default."""

Json = dict[str, Any]

ALL_ON: Json = {
    "agent": {
        "keySecret": "own-key",
        "createKey": False,
        "tlsSecrets": [{"namespace": "orders", "name": "agents"}, {"namespace": "billing", "name": "kafka"}],
    },
    "kafkaConfigSecrets": [{"namespace": "orders", "name": "kafka"}, {"namespace": "billing", "name": "kafka"}],
    "networkPolicy": {
        "enabled": True,
        "ingressFrom": [{"namespaceSelector": {}}],
        "apiServer": {"to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}], "ports": [6443]},
        "brokers": {"to": [{"podSelector": {"matchLabels": {"app": "kafka"}}}], "ports": [9092]},
    },
    "monitoring": {
        **{part: {"create": "always"} for part in ("podMonitor", "rules", "dashboard")},
        "tls": {"secretName": "operator-metrics"},
    },
    "admission": {
        "guard": {"exemptUsers": ["break-glass"]},
        "templates": {"serviceAccounts": ["default", "streams"]},
    },
    "imagePullSecrets": [{"name": "registry"}],
    "labels": {"team": "data"},
    "annotations": {"example.org/owner": "data"},
    "podLabels": {"sidecar": "none"},
    "podAnnotations": {"example.org/scrape": "true"},
    "priorityClassName": "system-cluster-critical",
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "serviceAccount": {"annotations": {"example.org/role": "operator"}},
    "settings": {"pollIdleSeconds": 20, "leaseSeconds": 30},
    "clusterName": "north",
    "kafka": {"allowedBrokers": ["*.kafka.svc:9092", "broker-1.example.org:9093"]},
    "restores": {"perCluster": 2},
    "applicationIds": [{"pattern": "orders*", "namespaces": ["shop", "test"]}],
    "enabled": True,
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "hostAliases": [{"ip": "10.0.0.9", "hostnames": ["kafka.example"]}],
    "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "revisionHistoryLimit": 3,
    "record": {
        "volume": {"existingClaim": "shared", "accessMode": "ReadWriteMany"},
        "kafka": {"bootstrapServers": "a:9092,b:9092", "topic": "flights", "configSecret": "record-client"},
    },
    "analytics": {
        "enabled": True,
        "source": "kafka",
        "tables": {"existingClaim": "tables"},
        "args": ["--max-bad=0.05"],
        "nodeSelector": {"pool": "batch"},
        "tolerations": [{"key": "batch", "operator": "Exists"}],
    },
}
NAMESPACED: Json = {"watchNamespaces": ["blue", "green"]}
MINIMAL: Json = {
    "replicas": 1,
    "runAsUser": None,
    "leaderElection": {"enabled": False},
    "crds": {"enabled": False},
    "rbac": {"autoscalers": False, "quotas": False, "aggregate": False, "diagnosis": False},
    "admission": {"guard": {"enabled": False}, "operator": {"enabled": False}, "templates": {"enabled": False}},
    "podDisruptionBudget": {"enabled": False},
    "topologySpread": {"enabled": False},
    "record": {"enabled": False},
}
CASES: dict[str, Json] = {"default": {}, "all on": ALL_ON, "namespaced": NAMESPACED, "minimal": MINIMAL}


@dataclass(frozen=True)
class Rendered:
    """All objects that one call of Helm gave."""

    objects: list[Json]

    def of(self, kind: str) -> list[Json]:
        """All of a kind."""
        return [each for each in self.objects if each["kind"] == kind]

    def one(self, kind: str, name: str = "streamapp-operator") -> Json:
        """The one of this kind and name."""
        (found,) = [each for each in self.of(kind) if each["metadata"]["name"] == name]
        return found

    def pods(self) -> Iterator[Json]:
        """The specification of every pod."""
        yield self.one("Deployment")["spec"]["template"]["spec"]
        yield self.one("Pod", "streamapp-operator-check")["spec"]
        yield from (job["spec"]["jobTemplate"]["spec"]["template"]["spec"] for job in self.of("CronJob"))


@functools.cache
def helm(major: int = 4) -> Path:
    """Give the program, built if need be."""
    settings = Settings.from_environment()
    return build_helm(settings.versions, Cache(settings.cache), major) / "helm"


def attempt(values: Json, major: int = 4, kubeconfig: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Render, however it ends; on a cluster where one is given, as an installation looks at it."""
    version = Settings.from_environment().versions.kubernetes
    on = (
        () if kubeconfig is None else (f"--kubeconfig={kubeconfig}", "--dry-run=server", "--disable-openapi-validation")
    )
    place = (f"--namespace={NAMESPACE}", f"--kube-version={version}", *on, "--values=-")
    values = {**values, "images": {"registry": REGISTRY, **values.get("images", {})}}
    return subprocess.run(
        [helm(major), "template", "streamapp-operator", CHART, *place],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        check=False,
    )


def render(values: Json, major: int = 4, kubeconfig: Path | None = None) -> Rendered:
    """Render, and give the objects."""
    ran = attempt(values, major, kubeconfig)
    assert ran.returncode == 0, ran.stderr
    return Rendered([each for each in yaml.safe_load_all(ran.stdout) if each is not None])


def refusal(values: Json) -> str:
    """What Helm says where it refuses these values, on one line; it must refuse them."""
    ran = attempt(values)
    assert ran.returncode != 0
    return re.sub(r"\s+", " ", ran.stderr)
