"""Cgroup folders that a killed lab left are removed, and only those."""

from pathlib import Path

import pytest

from lab.errors import LabError
from lab.node import isolation, namespaces
from lab.node.layout import CGROUP


def test_every_hierarchy_of_version_one_gets_and_loses_the_labs_folder(tmp_path: Path) -> None:
    for hierarchy in ("memory", "pids", "cpuset"):
        (tmp_path / hierarchy / "somebody-else").mkdir(parents=True)
    isolation.make_cgroups(tmp_path, CGROUP)
    (tmp_path / "memory" / CGROUP / "kubepods" / "pod1").mkdir(parents=True)
    assert all((tmp_path / hierarchy / CGROUP).is_dir() for hierarchy in ("memory", "pids", "cpuset"))
    namespaces.remove_cgroups(tmp_path, CGROUP)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*"))
    assert left == ["cpuset/somebody-else", "memory/somebody-else", "pids/somebody-else"]


def test_version_two_gets_one_folder(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory\n")
    (tmp_path / "system.slice").mkdir()
    isolation.make_cgroups(tmp_path, CGROUP)
    assert (tmp_path / CGROUP).is_dir()
    # Only what was missing is switched on.
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+pids"
    assert not (tmp_path / "system.slice" / CGROUP).exists()
    namespaces.remove_cgroups(tmp_path, CGROUP)
    assert not (tmp_path / CGROUP).exists()


def test_a_folder_that_cannot_go_is_named(tmp_path: Path) -> None:
    held = tmp_path / "memory" / CGROUP
    held.mkdir(parents=True)
    # A file makes rmdir fail as a process in the group would.
    (held / "cgroup.procs").touch()
    with pytest.raises(LabError) as raised:
        namespaces.remove_cgroups(tmp_path, CGROUP, patience_seconds=0.1)
    assert str(held) in raised.value.what
