"""What the embedded lab needs of a machine, checked before anything is built or started.

Each check raises a `LabError` that says how to mend it; none changes anything.
"""

import os
import shutil
import subprocess
from pathlib import Path

from lab.errors import LabError
from lab.settings import Settings

# The program, and the Debian package that brings it.
_PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "ip": "iproute2",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "mount": "mount",
}
_NETWORK_PLUGINS = Path("/usr/lib/cni")
GIB = 1024**3
MEMORY_NEEDED = 3 * GIB
"""Node parts 1 GiB, broker 0.5, three application pods 1, and room for a build."""
DISK_NEEDED_FOR_STATE = 5 * GIB
DISK_NEEDED_FOR_CACHE = 6 * GIB
"""Go's build cache is by far the largest; a full cache needs none of it."""


def check_machine(settings: Settings) -> None:
    """Check rights, programs, memory and disk for the embedded lab."""
    check_root(os.geteuid())
    check_programs(os.environ.get("PATH", ""))
    check_namespaces()
    check_memory(Path("/proc/meminfo"))
    check_disk(settings.state, DISK_NEEDED_FOR_STATE)
    check_disk(settings.cache, DISK_NEEDED_FOR_CACHE if not settings.cache.exists() else GIB)


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


def check_programs(path: str) -> None:
    """Name every missing program and network plugin at once, with one line that installs them."""
    # Daemons lie in sbin, which an ordinary user's PATH may lack.
    missing = {name: package for name, package in _PROGRAMS.items() if not shutil.which(name, path=path)}
    if not (_NETWORK_PLUGINS / "bridge").exists():
        missing[f"{_NETWORK_PLUGINS}/bridge"] = "containernetworking-plugins"
    if missing:
        raise LabError(
            f"programs: {', '.join(missing)} not found",
            "the embedded lab runs Debian's containerd and network tools",
            f"apt-get install --no-install-recommends {' '.join(sorted(set(missing.values())))}",
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


def check_disk(folder: Path, needed: int) -> None:
    """Refuse a folder whose file system has less than `needed` bytes free; the folder need not exist yet."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise LabError(
            f"disk of {folder}: too little room",
            f"{free / GIB:.1f} GiB are free, {needed / GIB:.0f} GiB are needed",
            "make room, or choose other folders by STREAMAPP_LAB_CACHE and STREAMAPP_LAB_STATE",
        )
