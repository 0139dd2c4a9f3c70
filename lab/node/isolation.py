"""The inner side of a node's namespaces: mounts, network and sysctls of the node.

Called by the node's supervisor as its first act, already inside new mount, network and process-id namespaces.
The second node's are made inside the first node's, which are the lab's.
Must never run outside of them: `prepare` refuses unless it is process 1.
"""

import os
import socket
import subprocess
import time
from pathlib import Path

from lab.errors import LabError
from lab.node.layout import FIRST, Layout, Node

# The kubelet and kube-proxy set these for a whole machine. They are covered by files of the lab's own inside its
# mount namespace, so the machine's values are never touched, not even by a lab that is killed.
_COVERED_SYSCTLS = {
    "vm/overcommit_memory": "1",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
# These belong to the network namespace and vanish with it.
_OWN_SYSCTLS = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/route_localnet": "1",
    # Without it a reply from one pod to another skips the rules that translated the service's address.
    "net/bridge/bridge-nf-call-iptables": "1",
}
UPLINK = "uplink"
"""The second node's end of the link between the nodes."""
_UPLINK_SECONDS = 10.0


def prepare(layout: Layout) -> None:
    """Make this process's namespaces a node: own `/proc`, `/run`, `/var/log`, bridge, routes and cgroups."""
    if os.getpid() != 1:
        raise LabError(
            "namespaces of the lab: not isolated",
            f"process {os.getpid()} is not the first of a process-id namespace",
            "start the lab with `python -m lab up`",
        )
    if layout.node != FIRST:
        _drop_mounts_of_the_first_node(layout)
    _mounts(layout)
    _cover_sysctls(layout)
    _network(layout.node)
    make_cgroups(Path("/sys/fs/cgroup"), layout.node.cgroup)


def _drop_mounts_of_the_first_node(layout: Layout) -> None:
    """Let go of what was copied with the mount namespace: the first node's containers, volumes and sockets."""
    tops = ("/run", "/var/log", "/var/lib/kubelet", "/var/lib/cni", str(layout.var))
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    # The newest mounts are last, and the first to go.
    inside = [path for path in reversed(mounted) if any(path == top or path.startswith(f"{top}/") for top in tops)]
    _run("umount", "--lazy", *inside)


def _mounts(layout: Layout) -> None:
    _run("mount", "-t", "proc", "proc", "/proc")
    _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    for name in ("containerd", "netns", "lock"):
        Path("/run", name).mkdir()
    for target, source in (
        ("/var/log", layout.own / "log"),
        # The kubelet keeps sockets of its plugins here, whatever its root folder is.
        ("/var/lib/kubelet", layout.own / "plugins"),
        ("/var/lib/cni", layout.own / "cni"),
    ):
        source.mkdir(parents=True)
        if not Path(target).exists():
            # An empty folder of this name is all that the host ever sees, and `clear` removes it.
            with layout.made_folders.open("a") as made:
                made.write(f"{target}\n")
            Path(target).mkdir()
        _run("mount", "--bind", str(source), target)


def cover_resolver(layout: Layout) -> None:
    """Let every process inside the lab resolve cluster names; to be called once `etc/resolv.conf` is written."""
    # /etc/resolv.conf may be a link to a file that is not there in this namespace.
    target = Path("/etc/resolv.conf").resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.touch(exist_ok=True)
    _run("mount", "--bind", str(layout.etc / "resolv.conf"), str(target))


def _cover_sysctls(layout: Layout) -> None:
    folder = layout.own / "sysctls"
    for name, value in _COVERED_SYSCTLS.items():
        real = Path("/proc/sys", name)
        if not real.exists():
            continue
        cover = folder / name
        cover.parent.mkdir(parents=True, exist_ok=True)
        cover.write_text(f"{value}\n")
        _run("mount", "--bind", str(cover), str(real))


def _network(node: Node) -> None:
    _run("ip", "link", "set", "lo", "up")
    for name, value in _OWN_SYSCTLS.items():
        path = Path("/proc/sys", name)
        if path.exists():
            path.write_text(value)
    # Without an address of its own a bridge takes the lowest of its ports', and changes it as pods come and go: what
    # pods send to the gateway is then lost until they ask for its address again, seconds later.
    _run("ip", "link", "add", "cni0", "address", node.mac, "type", "bridge")
    _run("ip", "address", "add", f"{node.address}/24", "dev", "cni0")
    _run("ip", "link", "set", "cni0", "up")
    # Service addresses have no route of their own: without a default one the kernel gives up before kube-proxy's
    # rules see the packet. Nothing answers beyond the bridge, so no packet can leave.
    if node == FIRST:
        _run("ip", "route", "add", "default", "dev", "cni0")
        return
    _wait_for_the_uplink()
    _run("ip", "link", "set", UPLINK, "up")
    _run("ip", "route", "add", "default", "via", FIRST.address, "dev", UPLINK, "onlink", "src", node.address)


def _wait_for_the_uplink() -> None:
    """Wait until the first node's side has put the link here: only it sees both namespaces."""
    deadline = time.monotonic() + _UPLINK_SECONDS
    while UPLINK not in [name for _, name in socket.if_nameindex()]:
        if time.monotonic() > deadline:
            raise LabError(
                "second node: no link to the first",
                f"no network link {UPLINK} within {_UPLINK_SECONDS:.0f} s",
                "read `python -m lab logs supervisor-2`",
            )
        time.sleep(0.02)


def make_cgroups(root: Path, name: str) -> None:
    """Make the node's folder in each cgroup hierarchy (version 1) or in the one there is (version 2)."""
    unified = root / "cgroup.controllers"
    if unified.exists():
        control = root / "cgroup.subtree_control"
        for controller in set(unified.read_text().split()) - set(control.read_text().split()):
            try:
                control.write_text(f"+{controller}")
            except OSError:
                continue  # a controller that this kernel does not delegate is reported by the kubelet itself
        (root / name).mkdir(exist_ok=True)
        return
    for hierarchy in root.iterdir():
        if hierarchy.is_dir() and not hierarchy.is_symlink():
            (hierarchy / name).mkdir(exist_ok=True)
    for setting in ("cpuset.mems", "cpuset.cpus"):
        source = root / "cpuset" / setting
        if source.exists():
            (root / "cpuset" / name / setting).write_text(source.read_text())


def _run(*command: str) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise LabError(
            f"namespaces of the lab: `{' '.join(command)}` failed",
            ran.stderr.strip() or f"exit code {ran.returncode}",
            "run as root on a machine that allows mounts and network namespaces",
        )
