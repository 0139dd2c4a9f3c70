"""Writes the configuration of every part of the embedded lab: certificates, tokens, kubeconfigs, and their own files.

Called once by the supervisor, before the first part starts. Everything is written anew at each start, so that no
secret of one lab opens the next.
"""

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

import yaml

from lab.node.certificates import Authority, write_signing_key
from lab.node.layout import (
    API_SERVER,
    CLUSTER_DOMAIN,
    NODE_ADDRESS,
    NODES,
    Layout,
)


@dataclass(frozen=True)
class Identity:
    """Who a part is for the API server."""

    user: str
    groups: tuple[str, ...] = ()


IDENTITIES: dict[str, Identity] = {
    "admin": Identity("lab-admin", ("system:masters",)),
    "kube-controller-manager": Identity("system:kube-controller-manager"),
    "kube-scheduler": Identity("system:kube-scheduler"),
    "kube-proxy": Identity("system:kube-proxy"),
    **{f"kubelet{node.suffix}": Identity(f"system:node:{node.name}", ("system:nodes",)) for node in NODES},
    "coredns": Identity("lab:coredns"),
    "metrics-server": Identity("lab:metrics-server"),
    "local-volumes": Identity("lab:local-volumes"),
}
"""Each with a kubeconfig and token of its own; rights beyond Kubernetes' built-in ones: `manifests/node.yaml`."""

SANDBOX_IMAGE = "localhost/streamapp/pause:1"


def write_all(layout: Layout) -> None:
    """Write every file below `layout.etc`, those of nodes that may come later too: no key is kept to sign more."""
    layout.etc.mkdir(mode=0o700, parents=True)
    _write_certificates(layout.etc)
    _write_identities(layout)
    for node in NODES:
        _write_node(Layout(layout.state, node))
    _write_yaml(layout.etc / "audit-policy.yaml", _AUDIT_POLICY)
    (layout.etc / "Corefile").write_text(_corefile(layout))
    (layout.etc / "resolv.conf").write_text(
        f"nameserver {NODE_ADDRESS}\nsearch {CLUSTER_DOMAIN}\noptions ndots:5 timeout:2\n"
    )


def _write_node(layout: Layout) -> None:
    _write_yaml(layout.kubelet_config, _kubelet(layout))
    layout.containerd_config.write_text(_containerd(layout))
    layout.pod_network.mkdir()
    (layout.pod_network / "10-lab.conflist").write_text(json.dumps(_network(layout), indent=2))


def _write_certificates(etc: Path) -> None:
    authority = Authority.create(etc, "ca")
    names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{CLUSTER_DOMAIN}")
    authority.issue("apiserver", "kube-apiserver", hosts=(*names, "localhost", "127.0.0.1", NODE_ADDRESS, "10.96.0.1"))
    for node in NODES:
        authority.issue(f"kubelet{node.suffix}", node.name, hosts=(node.name, node.address))
    authority.issue("apiserver-to-kubelet", "lab-apiserver", group="system:masters")
    # A second authority: whoever may speak for others to aggregated API servers must not be mistaken for a client.
    front_proxy = Authority.create(etc, "front-proxy-ca")
    front_proxy.issue("front-proxy", "lab-front-proxy")
    write_signing_key(etc / "service-accounts.key")


def _write_identities(layout: Layout) -> None:
    lines = []
    for name, identity in IDENTITIES.items():
        token = secrets.token_hex(24)
        groups = ",".join(identity.groups)
        lines.append(f'{token},{identity.user},{name},"{groups}"')
        path = layout.kubeconfig(name)
        path.touch(mode=0o600)
        _write_yaml(path, _kubeconfig(token, layout.etc / "ca.crt"))
    tokens = layout.etc / "tokens.csv"
    tokens.touch(mode=0o600)
    tokens.write_text("\n".join(lines) + "\n")


def _kubeconfig(token: str, authority: Path) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {"server": API_SERVER, "certificate-authority": str(authority)}}],
        "users": [{"name": "lab", "user": {"token": token}}],
        "contexts": [{"name": "streamapp-lab", "context": {"cluster": "lab", "user": "lab"}}],
        "current-context": "streamapp-lab",
    }


def _kubelet(layout: Layout) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": layout.node.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout.etc / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(layout.etc / f"kubelet{layout.node.suffix}.crt"),
        "tlsPrivateKeyFile": str(layout.etc / f"kubelet{layout.node.suffix}.key"),
        "containerRuntimeEndpoint": f"unix://{layout.containerd_socket}",
        "clusterDNS": [NODE_ADDRESS],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": str(layout.etc / "resolv.conf"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.node.cgroup}",
        # Debian 12 may still boot with cgroup v1, which newer kubelets refuse by default.
        "failCgroupV1": False,
        # CAP_SYS_RESOURCE may be missing, and then no score can be lowered.
        "oomScoreAdj": 0,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "podLogsDir": str(layout.own / "pod-logs"),
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "serializeImagePulls": False,
        "shutdownGracePeriod": "0s",
        "nodeStatusUpdateFrequency": "4s",
        "registerNode": True,
    }


_AUDIT_POLICY: dict[str, object] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        # The lab's own parts talk all the time and are nobody's question.
        {"level": "None", "users": [identity.user for name, identity in IDENTITIES.items() if name != "admin"]},
        {"level": "None", "userGroups": ["system:masters"], "nonResourceURLs": ["/healthz*", "/readyz*", "/livez*"]},
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "Metadata"},
    ],
}


def _containerd(layout: Layout) -> str:
    return f"""\
version = 2
root = "{layout.own}/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "{layout.containerd_socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{SANDBOX_IMAGE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{layout.pod_network}"
"""


def _network(layout: Layout) -> dict[str, object]:
    return {
        "cniVersion": "0.4.0",
        "name": "lab",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                # A pod sees who calls it, from whichever node; outside of the nodes there is nothing to call.
                "ipMasq": False,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "dataDir": str(layout.own / "addresses"),
                    "ranges": [[{"subnet": layout.node.pods, "gateway": layout.node.address}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def _corefile(layout: Layout) -> str:
    # No upstream: nothing outside the lab can be reached from inside it, so an unknown name fails at once.
    return f"""\
.:53 {{
    bind {NODE_ADDRESS}
    errors
    health {NODE_ADDRESS}:8080
    ready {NODE_ADDRESS}:8181
    cache 5
    kubernetes {CLUSTER_DOMAIN} in-addr.arpa {{
        kubeconfig {layout.kubeconfig("coredns")} streamapp-lab
        ttl 5
    }}
}}
"""


def _write_yaml(path: Path, content: dict[str, object]) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False))
