"""One machine has one lab: these tests own it while they run, and refuse to touch one that a person uses."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.clusters.embedded import EmbeddedCluster
from lab.node import namespaces
from lab.node.layout import Layout
from lab.settings import Settings


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """Give the embedded cluster, down; whatever a test leaves is taken down after it."""
    settings = Settings.from_environment()
    if namespaces.find(Layout(settings.state)) is not None:
        pytest.fail("a lab is up and somebody may be using it; stop it first: make lab-down")
    cluster = EmbeddedCluster(settings)
    # What a lab that was killed before left is not to be blamed on these tests.
    cluster.down()
    yield cluster
    cluster.down()


@pytest.fixture
def traces() -> Callable[[], dict[str, object]]:
    """Give a function that tells everything of a lab that the rest of the machine could notice."""
    state = Settings.from_environment().state
    return lambda: _traces(state)


def _traces(state: Path) -> dict[str, object]:
    values = {}
    for name in (
        "vm/overcommit_memory",
        "kernel/panic",
        "kernel/panic_on_oops",
        "kernel/keys/root_maxkeys",
        "kernel/keys/root_maxbytes",
    ):
        with contextlib.suppress(FileNotFoundError):
            values[name] = Path("/proc/sys", name).read_text()
    links = sorted(path.name for path in Path("/sys/class/net").iterdir())
    return {
        "sysctls": values,
        "network links": links,
        "mounts": [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(state) in line],
        "cgroups": sorted(map(str, Path("/sys/fs/cgroup").glob("**/streamapp-lab"))),
        "forwarding": Path("/proc/sys/net/ipv4/ip_forward").read_text(),
        "written state": sorted(path.name for path in state.iterdir() if path.name != "logs") if state.exists() else [],
        "mount points": [name for name in ("/var/lib/cni", "/var/lib/kubelet") if Path(name).exists()],
    }
