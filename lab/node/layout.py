"""Names, addresses and folders of the embedded lab, in one place for its outer and its inner side."""

from dataclasses import dataclass
from pathlib import Path

NODE_ADDRESS = "10.244.0.1"
"""Address of the first node's bridge `cni0`, which is the node, the API server and the DNS server."""
POD_RANGE = "10.244.0.0/16"
"""Pods of all nodes; each node has a part of it."""
SERVICE_RANGE = "10.96.0.0/16"
CLUSTER_DOMAIN = "cluster.local"
CGROUP = "streamapp-lab"
"""Every cgroup of the lab lies below a folder of this name, in each hierarchy."""
LOCKS = Path("/run/streamapp-lab")
"""Folder of the locks, readable by root alone, so that nobody else can hold them or put a link in their place."""
API_SERVER = f"https://{NODE_ADDRESS}:6443"


@dataclass(frozen=True)
class Node:
    """What tells one node of the lab from another."""

    name: str
    """Of the Node object, and its host name."""
    address: str
    """Of its bridge `cni0`, the gateway of its pods."""
    mac: str
    """Of the same bridge; fixed, because pods remember it."""
    pods: str
    """Range of its pods."""
    suffix: str
    """Ends the names of its parts, its logs and its files."""
    cgroup: str
    """Folder of its pods, below every hierarchy of cgroups."""


FIRST = Node("lab", NODE_ADDRESS, "02:00:0a:f4:00:01", "10.244.0.0/24", "", CGROUP)
SECOND = Node("lab-2", "10.244.1.1", "02:00:0a:f4:01:01", "10.244.1.0/24", "-2", f"{CGROUP}/lab-2")
"""Only there while a test or a user wants it (`lab.node.second`)."""
NODES = (FIRST, SECOND)


@dataclass(frozen=True)
class Layout:
    """Where the running lab, and one node in it, keep what they need, below one state folder."""

    state: Path
    node: Node = FIRST

    @property
    def lock(self) -> Path:
        """File whose lock the supervisor holds as long as it lives; one a machine, whatever the state folder."""
        return LOCKS / "running"

    @property
    def start_lock(self) -> Path:
        """File whose lock an `up` or `down` holds while it works."""
        return LOCKS / "starting"

    @property
    def marker(self) -> Path:
        """Tells that this state folder was made by the lab; nothing is removed from one without it."""
        return self.state / ".streamapp-lab"

    @property
    def made_folders(self) -> Path:
        """Names, one a line, of empty folders that the lab had to make on the host as mount points."""
        return self.state / "made-folders"

    @property
    def complete(self) -> Path:
        """Marker that `up` came to its end: node, images and broker."""
        return self.var / "complete"

    @property
    def run_record(self) -> Path:
        """JSON written by the node's supervisor: its process id and the program folder in use."""
        return self.state / f"run{self.node.suffix}.json"

    @property
    def status(self) -> Path:
        """JSON written by the node's supervisor: the parts, their processes and restarts."""
        return self.state / f"status{self.node.suffix}.json"

    @property
    def logs(self) -> Path:
        """One file a part; they outlive the lab until the next `up`."""
        return self.state / "logs"

    @property
    def supervisor_log(self) -> Path:
        """What the node's supervisor says."""
        return self.logs / f"supervisor{self.node.suffix}.log"

    @property
    def etc(self) -> Path:
        """Configuration, certificates, tokens and kubeconfigs of this run."""
        return self.state / "etc"

    @property
    def var(self) -> Path:
        """Everything the parts write: etcd, kubelet, containers, volumes. Gone with the lab."""
        return self.state / "var"

    @property
    def own(self) -> Path:
        """What this node alone writes: containers, kubelet, addresses of pods. Gone with the node."""
        return self.var if self.node == FIRST else self.var / self.node.name

    @property
    def volumes(self) -> Path:
        """A folder a persistent volume; every node can mount it."""
        return self.var / "volumes"

    @property
    def imported(self) -> Path:
        """JSON written by `up`: the images that the first node's containerd has, with the archive of each."""
        return self.var / "images.json"

    @property
    def kubelet_config(self) -> Path:
        """The configuration of this node's kubelet."""
        return self.etc / f"kubelet{self.node.suffix}.yaml"

    @property
    def containerd_config(self) -> Path:
        """The configuration of this node's containerd."""
        return self.etc / f"containerd{self.node.suffix}.toml"

    @property
    def pod_network(self) -> Path:
        """Folder of the configuration of this node's network plugins."""
        return self.etc / f"cni{self.node.suffix}"

    @property
    def audit_log(self) -> Path:
        """The API server's audit log, one JSON event a line."""
        return self.logs / "audit.log"

    @property
    def containerd_socket(self) -> Path:
        """Where containerd listens: one path, and in each node's mount namespace another socket."""
        return Path("/run/containerd/containerd.sock")

    def kubeconfig(self, who: str = "admin") -> Path:
        """Give the kubeconfig of one of the identities in `configuration.IDENTITIES`."""
        return self.etc / f"{who}.kubeconfig"
