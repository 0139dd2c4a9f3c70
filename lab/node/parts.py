"""The parts of the embedded node and the flags they are started with.

A part is one process of the supervisor. Flags are those that were seen to work without root's rarer capabilities.
"""

from dataclasses import dataclass
from pathlib import Path

from lab.node.layout import API_SERVER, NODE_ADDRESS, NODES, POD_RANGE, SECOND, SERVICE_RANGE, Layout
from lab.settings import LAB

AGGREGATOR_USERS = "lab-front-proxy"
MANIFESTS = LAB / "manifests"


@dataclass(frozen=True)
class Part:
    """A process of the node: its name, which is also its log's, and its command line."""

    name: str
    command: tuple[str, ...]


def before_the_api(layout: Layout, programs: Path) -> list[Part]:
    """Give the parts that the API server needs, and itself, in starting order."""
    return [
        containerd(layout),
        Part("etcd", _etcd(layout, programs)),
        Part("kube-apiserver", _apiserver(layout, programs)),
    ]


def after_the_api(layout: Layout, programs: Path) -> list[Part]:
    """Give the parts that are started once the API server answers; Kubernetes itself grants them their rights."""

    def part(name: str, *flags: str) -> Part:
        return Part(name, (str(programs / name), *flags))

    return [
        part("kube-controller-manager", *_controller_manager(layout)),
        part(
            "kube-scheduler",
            f"--kubeconfig={layout.kubeconfig('kube-scheduler')}",
            "--leader-elect=false",
            f"--authentication-kubeconfig={layout.kubeconfig('kube-scheduler')}",
            f"--authorization-kubeconfig={layout.kubeconfig('kube-scheduler')}",
            "--bind-address=127.0.0.1",
        ),
        *of_the_node(layout, programs),
    ]


def containerd(layout: Layout) -> Part:
    """Give the container runtime of a node."""
    return Part(f"containerd{layout.node.suffix}", ("containerd", "--config", str(layout.containerd_config)))


def of_the_node(layout: Layout, programs: Path) -> list[Part]:
    """Give the parts that every node has of its own, beside its containerd."""
    node = layout.node

    def part(name: str, *flags: str) -> Part:
        return Part(f"{name}{node.suffix}", (str(programs / name), *flags, f"--hostname-override={node.name}"))

    return [
        part(
            "kubelet",
            f"--config={layout.kubelet_config}",
            f"--kubeconfig={layout.kubeconfig(f'kubelet{node.suffix}')}",
            f"--node-ip={node.address}",
            f"--root-dir={layout.own / 'kubelet'}",
        ),
        part(
            "kube-proxy",
            f"--kubeconfig={layout.kubeconfig('kube-proxy')}",
            "--proxy-mode=iptables",
            f"--cluster-cidr={POD_RANGE}",
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0",
            "--bind-address=127.0.0.1",
        ),
    ]


def node_manifest(layout: Layout, programs: Path) -> Part:
    """Give the command that grants the last parts their rights; it runs once, to its end."""
    kubeconfig, manifest = f"--kubeconfig={layout.kubeconfig()}", str(MANIFESTS / "node.yaml")
    return Part("node-manifest", (str(programs / "kubectl"), kubeconfig, "apply", "--filename", manifest))


def after_the_manifest(layout: Layout, programs: Path) -> list[Part]:
    """Give the parts that need the rights of `manifests/node.yaml`."""

    def part(name: str, *flags: str) -> Part:
        return Part(name, (str(programs / name), *flags))

    return [
        part("coredns", "-conf", str(layout.etc / "Corefile")),
        part("metrics-server", *_metrics_server(layout)),
        part(
            "local-volumes",
            f"--kubeconfig={layout.kubeconfig('local-volumes')}",
            f"--folder={layout.volumes}",
            f"--nodes={','.join(node.name for node in NODES)}",
        ),
    ]


def part_names(layout: Layout) -> list[str]:
    """Give the names of all parts, which are the names of the logs; those of a second node are last."""
    stages = (before_the_api, after_the_api, after_the_manifest)
    second = Layout(layout.state, SECOND)
    parts = [part for stage in stages for part in stage(layout, Path())]
    return [part.name for part in (*parts, containerd(second), *of_the_node(second, Path()))]


def _etcd(layout: Layout, programs: Path) -> tuple[str, ...]:
    return (
        str(programs / "etcd"),
        f"--data-dir={layout.var / 'etcd'}",
        "--listen-client-urls=http://127.0.0.1:2379",
        "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-peer-urls=http://127.0.0.1:2380",
        "--initial-advertise-peer-urls=http://127.0.0.1:2380",
        "--initial-cluster=default=http://127.0.0.1:2380",
        # The data never outlives the process, so waiting for the disk buys nothing.
        "--unsafe-no-fsync",
        "--log-level=warn",
    )


def _apiserver(layout: Layout, programs: Path) -> tuple[str, ...]:
    etc = layout.etc
    return (
        str(programs / "kube-apiserver"),
        "--etcd-servers=http://127.0.0.1:2379",
        "--secure-port=6443",
        f"--advertise-address={NODE_ADDRESS}",
        f"--tls-cert-file={etc / 'apiserver.crt'}",
        f"--tls-private-key-file={etc / 'apiserver.key'}",
        f"--client-ca-file={etc / 'ca.crt'}",
        f"--token-auth-file={etc / 'tokens.csv'}",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={etc / 'service-accounts.key'}",
        f"--service-account-signing-key-file={etc / 'service-accounts.key'}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--allow-privileged=true",
        "--kubelet-preferred-address-types=InternalIP,Hostname",
        f"--kubelet-certificate-authority={etc / 'ca.crt'}",
        f"--kubelet-client-certificate={etc / 'apiserver-to-kubelet.crt'}",
        f"--kubelet-client-key={etc / 'apiserver-to-kubelet.key'}",
        "--enable-aggregator-routing=true",
        f"--requestheader-client-ca-file={etc / 'front-proxy-ca.crt'}",
        f"--requestheader-allowed-names={AGGREGATOR_USERS}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={etc / 'front-proxy.crt'}",
        f"--proxy-client-key-file={etc / 'front-proxy.key'}",
        f"--audit-policy-file={etc / 'audit-policy.yaml'}",
        f"--audit-log-path={layout.audit_log}",
        "--audit-log-maxsize=200",
        "--audit-log-maxbackup=2",
    )


def _controller_manager(layout: Layout) -> tuple[str, ...]:
    kubeconfig = layout.kubeconfig("kube-controller-manager")
    return (
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={layout.etc / 'service-accounts.key'}",
        f"--root-ca-file={layout.etc / 'ca.crt'}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--cluster-cidr={POD_RANGE}",
        # A node that is asked every 4 s is called lost after 20 s, as in an ordinary cluster after 40.
        "--node-monitor-grace-period=20s",
        # The autoscaler's own pace stays the default: what users see is what is measured here.
    )


def _metrics_server(layout: Layout) -> tuple[str, ...]:
    kubeconfig = layout.kubeconfig("metrics-server")
    return (
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--kubelet-certificate-authority={layout.etc / 'ca.crt'}",
        "--kubelet-preferred-address-types=InternalIP",
        "--metric-resolution=10s",
        "--kubelet-request-timeout=5s",
        "--secure-port=4443",
        f"--cert-dir={layout.var / 'metrics-server'}",
    )


def api_server_url() -> str:
    """Give the address at which the supervisor asks whether the API server is ready."""
    return f"{API_SERVER}/readyz"
