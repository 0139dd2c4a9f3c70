"""What the embedded lab needs of a machine, checked before anything is built or started.

Each check raises a `LabError` that says how to mend it; none changes anything.
"""

import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.build.plan import disk_needed
from lab.errors import LabError
from lab.settings import Settings, search_path

# The program, and the Debian package that brings it.
_PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "ip": "iproute2",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "mount": "mount",
    "losetup": "mount",
    "mkfs.xfs": "xfsprogs",
}
GIB = 1024**3
MEMORY_NEEDED = 3 * GIB
"""Node parts 1 GiB, broker 0.5, three application pods 1, and room for a build."""
DISK_NEEDED_FOR_STATE = 5 * GIB


@dataclass(frozen=True)
class Machine:
    """Where the facts about a machine are found."""

    user: int
    """Effective user id."""
    path: str
    """Folders in which programs are looked up."""
    meminfo: Path = Path("/proc/meminfo")
    network_plugins: Path = Path("/usr/lib/cni")
    bridge_settings: Path = Path("/proc/sys/net/bridge")
    """There as soon as the kernel's module br_netfilter is."""

    @classmethod
    def this(cls) -> "Machine":
        """Give the machine that this process runs on."""
        return cls(os.geteuid(), search_path())


def check_machine(settings: Settings, machine: Machine | None = None) -> None:
    """Check rights, programs, kernel, memory and disk for the embedded lab; the first that is wrong is raised."""
    machine = machine or Machine.this()
    check_root(machine.user)
    check_programs(machine.path, machine.network_plugins)
    check_namespaces()
    check_bridge(machine.bridge_settings)
    check_memory(machine.meminfo)
    check_disk([(settings.state, DISK_NEEDED_FOR_STATE), *disk_needed(settings)])


def check_root(effective_user: int) -> None:
    """Refuse any user but root: mounts, bridges and containers need it."""
    if effective_user != 0:
        raise LabError(
            "user: not root",
            f"this process runs as user {effective_user}; the lab makes namespaces, mounts and a bridge",
            "run the same command with sudo, or use another cluster: CLUSTER=kind or CLUSTER=context",
        )


def check_namespaces() -> None:
    """Try for real whether this machine lets root make the namespaces that the lab lives in."""
    tried = subprocess.run(
        ("unshare", "--mount", "--net", "--pid", "--fork", "mount", "-t", "tmpfs", "tmpfs", "/run"),
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode:
        raise LabError(
            "namespaces: not allowed here",
            tried.stderr.strip() or f"unshare ended with {tried.returncode}",
            "run on a machine or a virtual machine, not in an unprivileged container, or use another cluster: "
            "CLUSTER=kind or CLUSTER=context",
        )


def check_programs(path: str, network_plugins: Path) -> None:
    """Name every missing program and network plugin at once, with one line that installs them."""
    missing = {name: package for name, package in _PROGRAMS.items() if not shutil.which(name, path=path)}
    if not (network_plugins / "bridge").exists():
        missing[f"{network_plugins}/bridge"] = "containernetworking-plugins"
    if missing:
        raise LabError(
            f"programs: {', '.join(missing)} not found",
            "the embedded lab runs Debian's containerd and network tools",
            f"apt-get install --no-install-recommends {' '.join(sorted(set(missing.values())))}",
        )


def check_bridge(bridge_settings: Path) -> None:
    """Load the kernel's module br_netfilter if it is not there; without it Services do not lead from pod to pod."""
    if bridge_settings.exists():
        return
    modprobe = shutil.which("modprobe", path=search_path())
    said = "modprobe not found"
    if modprobe:
        loaded = subprocess.run((modprobe, "br_netfilter"), capture_output=True, text=True, check=False)
        said = loaded.stderr.strip() or "the kernel does not have it"
    if not bridge_settings.exists():
        raise LabError(
            "kernel module br_netfilter: not loaded",
            said,
            "`apt-get install kmod` and load it (`modprobe br_netfilter`), or use another "
            "cluster: CLUSTER=kind or CLUSTER=context",
        )


def check_memory(meminfo: Path) -> None:
    """Refuse a machine whose available memory cannot hold the lab and the demo."""
    lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
    available = int(lines["MemAvailable"].split()[0]) * 1024
    if available < MEMORY_NEEDED:
        raise LabError(
            "memory: too little",
            f"{available / GIB:.1f} GiB are available, the lab and the demo need {MEMORY_NEEDED / GIB:.0f} GiB",
            "end other programs, or use another cluster: CLUSTER=kind or CLUSTER=context",
        )


def check_disk(needs: Sequence[tuple[Path, int]]) -> None:
    """Refuse a file system with less room than all folders on it need together; a folder need not exist yet."""
    needed: dict[int, int] = defaultdict(int)
    folders: dict[int, list[Path]] = defaultdict(list)
    for folder, size in needs:
        device = _existing(folder).stat().st_dev
        needed[device] += size
        folders[device].append(folder)
    for device, size in needed.items():
        free = shutil.disk_usage(_existing(folders[device][0])).free
        if free < size:
            raise LabError(
                f"disk of {', '.join(map(str, folders[device]))}: too little room",
                f"{free / GIB:.1f} GiB are free, {size / GIB:.1f} GiB are needed",
                "make room, or choose other folders by STREAMAPP_LAB_CACHE and STREAMAPP_LAB_STATE",
            )


def _existing(folder: Path) -> Path:
    return next(parent for parent in (folder, *folder.parents) if parent.exists())
