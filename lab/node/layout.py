"""Names, addresses and folders of the embedded lab, in one place for its outer and its inner side."""

from dataclasses import dataclass
from pathlib import Path

NODE_NAME = "lab"
NODE_ADDRESS = "10.244.0.1"
"""Address of the bridge `cni0`, which is the node, the API server and the DNS server."""
POD_RANGE = "10.244.0.0/24"
SERVICE_RANGE = "10.96.0.0/16"
CLUSTER_DOMAIN = "cluster.local"
CGROUP = "streamapp-lab"
"""Every cgroup of the lab lies below a folder of this name, in each hierarchy."""
LOCKS = Path("/run/streamapp-lab")
"""Folder of the locks, readable by root alone, so that nobody else can hold them or put a link in their place."""
API_SERVER = f"https://{NODE_ADDRESS}:6443"


@dataclass(frozen=True)
class Layout:
    """Where the running lab keeps what it needs, below one state folder."""

    state: Path

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
        """JSON written by `up`: process id of the supervisor and the program folder in use."""
        return self.state / "run.json"

    @property
    def status(self) -> Path:
        """JSON written by the supervisor: the parts, their processes and restarts."""
        return self.state / "status.json"

    @property
    def logs(self) -> Path:
        """One file a part; they outlive the lab until the next `up`."""
        return self.state / "logs"

    @property
    def etc(self) -> Path:
        """Configuration, certificates, tokens and kubeconfigs of this run."""
        return self.state / "etc"

    @property
    def var(self) -> Path:
        """Everything the parts write: etcd, kubelet, containers, volumes. Gone with the lab."""
        return self.state / "var"

    @property
    def imported(self) -> Path:
        """JSON written by `up`: the images that containerd has, with the archive that each came from."""
        return self.var / "images.json"

    @property
    def audit_log(self) -> Path:
        """The API server's audit log, one JSON event a line."""
        return self.logs / "audit.log"

    @property
    def containerd_socket(self) -> Path:
        """Where containerd listens (inside the lab's mount namespace)."""
        return Path("/run/containerd/containerd.sock")

    def kubeconfig(self, who: str = "admin") -> Path:
        """Give the kubeconfig of one of the identities in `configuration.IDENTITIES`."""
        return self.etc / f"{who}.kubeconfig"
