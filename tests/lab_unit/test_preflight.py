"""What a machine lacks is named, with its remedy, before anything is built or started."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lab import preflight
from lab.errors import LabError
from lab.preflight import Machine
from lab.settings import REPOSITORY, Settings, search_path

# Modules and settings are read before rights are given up: interpreter and repository may lie where only root reads.
_AS_NOBODY = """
import os
from lab.commands.root import main
from lab.settings import Settings

settings = Settings.from_environment()
Settings.from_environment = staticmethod(lambda: settings)
os.setuid(65534)
raise SystemExit(main())
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user or to make namespaces")


@as_root
def test_without_root_up_says_so_and_changes_nothing(tmp_path: Path) -> None:
    # A user without rights cannot read /root, where the interpreter may lie; the identity is dropped in the child.
    ran = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, "up"],
        cwd=REPOSITORY,
        env={**os.environ, "STREAMAPP_LAB_STATE": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "error: user: not root" in ran.stderr
    assert "runs as user 65534" in ran.stderr
    assert "sudo" in ran.stderr
    assert not (tmp_path / "state").exists()


@as_root
def test_a_machine_without_namespaces_is_refused_by_trying() -> None:
    # Inside a user namespace the number of further ones can be set to none, as hardened hosts do.
    script = (
        "echo 0 > /proc/sys/user/max_net_namespaces; "
        f"exec {sys.executable} -c 'from lab import preflight; preflight.check_namespaces()'"
    )
    ran = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "namespaces: not allowed here" in ran.stderr
    assert "CLUSTER=kind" in ran.stderr


@as_root
def test_this_machine_allows_namespaces() -> None:
    preflight.check_namespaces()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Give a machine that lacks nothing, in files of the test's own; each test takes one thing away."""
    programs = tmp_path / "sbin"
    programs.mkdir()
    names = ("containerd", "ctr", "runc", "nsenter", "setpriv", "unshare", "mount", "conntrack", "ip", "iptables")
    for name in (*names, "losetup", "mkfs.xfs"):
        (programs / name).touch(mode=0o755)
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 24000000 kB\nMemAvailable:    8388608 kB\n")
    plugins = tmp_path / "cni"
    plugins.mkdir()
    (plugins / "bridge").touch()
    bridge = tmp_path / "bridge"
    bridge.mkdir()
    return Machine(0, str(programs), meminfo, plugins, bridge)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Give settings whose folders lie in the test's own."""
    folders = {"STREAMAPP_LAB_STATE": str(tmp_path / "state"), "STREAMAPP_LAB_CACHE": str(tmp_path / "cache")}
    return Settings.from_environment(folders)


@as_root
def test_a_machine_that_lacks_nothing_passes(settings: Settings, machine: Machine) -> None:
    preflight.check_machine(settings, machine)


def test_a_user_without_rights_is_the_first_thing_said(settings: Settings, machine: Machine) -> None:
    with pytest.raises(LabError) as raised:
        preflight.check_machine(settings, replace(machine, user=1000))
    assert raised.value.what == "user: not root"


def test_missing_programs_are_named_together_with_one_line_that_installs_them(
    settings: Settings, machine: Machine, tmp_path: Path
) -> None:
    for name in ("ip", "iptables"):
        (tmp_path / "sbin" / name).unlink()
    (tmp_path / "cni" / "bridge").unlink()
    with pytest.raises(LabError) as raised:
        preflight.check_machine(settings, machine)
    assert raised.value.what == f"programs: ip, iptables, {tmp_path}/cni/bridge not found"
    packages = "containernetworking-plugins iproute2 iptables"
    assert raised.value.next_step == f"apt-get install --no-install-recommends {packages}"


@as_root
def test_too_little_memory_is_refused_with_both_figures(settings: Settings, machine: Machine) -> None:
    machine.meminfo.write_text("MemTotal: 24000000 kB\nMemAvailable:    1048576 kB\n")
    with pytest.raises(LabError) as raised:
        preflight.check_machine(settings, machine)
    assert raised.value.why == "1.0 GiB are available, the lab and the demo need 3 GiB"


@as_root
def test_a_kernel_that_cannot_filter_bridges_is_refused(settings: Settings, machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(LabError) as raised:
        preflight.check_machine(settings, replace(machine, bridge_settings=tmp_path / "none"))
    assert raised.value.what == "kernel module br_netfilter: not loaded"


def test_programs_in_sbin_are_found_from_a_plain_su() -> None:
    assert search_path({"PATH": "/usr/bin"}) == "/usr/bin:/usr/local/sbin:/usr/sbin:/sbin"


@as_root
def test_too_little_disk_is_refused_on_a_real_small_file_system(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    code = (
        "from pathlib import Path; from lab import preflight; "
        f"preflight.check_disk([(Path('{small}/not/there/yet'), preflight.GIB), (Path('{small}'), preflight.GIB)])"
    )
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size=64M tmpfs {small} && {sys.executable} -c "{code}"'],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert f"disk of {small}/not/there/yet, {small}: too little room" in ran.stderr
    assert "0.1 GiB are free, 2.0 GiB are needed" in ran.stderr
    assert "STREAMAPP_LAB_STATE" in ran.stderr


def test_disk_with_room_passes(tmp_path: Path) -> None:
    preflight.check_disk([(tmp_path / "not" / "there", 1)])
