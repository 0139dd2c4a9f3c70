"""The outer side of the embedded lab: start it, find it, enter it, stop it, and clear what a killed one left.

The lab is one child of `unshare`; whoever holds the lock on `<state>/lock` is its supervisor, and the kernel releases
that lock with the last of its processes, however it ends. So "is it running" is never guessed from a pid file.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.node.layout import CGROUP, Layout
from lab.settings import REPOSITORY

INSIDE = "STREAMAPP_LAB_INSIDE"
"""Set in the environment of whatever runs inside the lab's namespaces."""
_CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Lab:
    """A running lab, as the machine sees it."""

    pid: int
    """Process id, outside, of the lab's process 1."""
    programs: Path
    """Folder of the programs it was started with."""
    since: float
    """Start, in seconds since the epoch."""

    @property
    def is_alive(self) -> bool:
        """Whether process 1 is still there."""
        return Path(f"/proc/{self.pid}").exists()


def find(layout: Layout) -> Lab | None:
    """Give the running lab, or None: decided by the lock alone. LabError if it runs with another state folder."""
    if not layout.lock.exists() or _free(layout.lock):
        return None
    return _recorded(layout, Path(layout.lock.read_text()))


def _recorded(layout: Layout, state: Path) -> Lab:
    if state != layout.state:
        raise LabError(
            "lab: up with other settings",
            f"its state folder is {state}, not {layout.state}; there is one lab a machine",
            f"use it with STREAMAPP_LAB_STATE={state}",
        )
    # The lock is held a moment before the record is written.
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError, KeyError):
            record = json.loads(layout.run_record.read_text())
            lab = Lab(record["pid"], Path(record["programs"]), record["since"])
            if lab.is_alive:
                return lab
        time.sleep(0.05)
    raise LabError(
        "lab: between two states",
        f"its lock is held, but {layout.run_record} names no process",
        "wait a moment and try again",
    )


@contextlib.contextmanager
def starting(layout: Layout) -> Iterator[None]:
    """Hold the start lock: one `up` or `down` at a time. The kernel releases it however the holder ends."""
    with layout.start_lock.open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LabError(
                "lab: another `up` or `down` is at work",
                f"{layout.start_lock} is locked",
                f"wait for it, or look for it with `fuser -v {layout.start_lock}`",
            ) from error
        yield


def take_lock(layout: Layout) -> int:
    """Take the lab's lock and give its file descriptor, to be inherited by the supervisor; LabError if it is held."""
    layout.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(layout.lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise up_already(layout) from error
    os.truncate(lock, 0)
    os.write(lock, str(layout.state).encode())
    return lock


def up_already(layout: Layout) -> LabError:
    """Give the error of a second `up`."""
    return LabError(
        "lab: up already",
        f"{layout.lock} is locked by its process 1; there is one lab a machine",
        "use it (`python -m lab status`), bring its images up to date (`python -m lab up --reuse`), "
        "or stop it first (`python -m lab down`)",
    )


def start(layout: Layout, programs: Path, lock: int) -> Lab:
    """Start the supervisor in new namespaces; it inherits the lock. Returns as soon as its process exists."""
    layout.logs.mkdir(parents=True, exist_ok=True)
    with (layout.logs / "supervisor.log").open("wb") as log:
        outer = subprocess.Popen(
            (
                *("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "slave"),
                *(sys.executable, "-m", "lab.node.supervisor", str(layout.state), str(programs)),
            ),
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(lock,),
        )
    lab = Lab(_only_child(outer, layout), programs, time.time())
    # It outlives this process on purpose; without this, Popen would complain that nobody waited.
    outer.returncode = 0
    record = {"pid": lab.pid, "programs": str(programs), "since": lab.since}
    fresh = layout.run_record.with_suffix(".new")
    fresh.write_text(json.dumps(record))
    fresh.replace(layout.run_record)
    return lab


def _only_child(outer: "subprocess.Popen[bytes]", layout: Layout) -> int:
    children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and outer.poll() is None:
        with contextlib.suppress(OSError):
            if found := children.read_text().split():
                return int(found[0])
        time.sleep(0.02)
    raise LabError(
        "namespaces of the lab: could not be made",
        (layout.logs / "supervisor.log").read_text().strip() or "unshare ended without a word",
        "run as root, on a machine (not in a container) that allows mount, network and process-id namespaces",
    )


def enter_command(lab: Lab) -> tuple[str, ...]:
    """Give the words to put before a command so that it runs inside the lab, in the current folder."""
    return ("nsenter", "-t", str(lab.pid), "-m", "-n", "-p", f"--wd={Path.cwd()}", "--")


def environment(layout: Layout, lab: Lab) -> dict[str, str]:
    """Give the environment of a command inside the lab: the parts' programs first, and the admin's kubeconfig."""
    return {
        **os.environ,
        "PATH": f"{lab.programs}:{os.environ['PATH']}",
        "KUBECONFIG": str(layout.kubeconfig()),
        INSIDE: "1",
    }


def stop(layout: Layout, lab: Lab) -> None:
    """End the lab's process 1 and wait until its lock is free; the kernel ends all other processes with it."""
    for kill, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 30.0)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(lab.pid, kill)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if _free(layout.lock):
                return
            time.sleep(0.05)
    raise LabError(
        f"lab (process {lab.pid}): does not end",
        "its process 1 was killed and its lock is still held, probably by a process that waits for a disk",
        f"look at `fuser -v {layout.lock}` and /proc/{lab.pid}/stack, then restart the machine",
    )


def _free(path: Path) -> bool:
    with path.open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def clear(layout: Layout) -> None:
    """Remove what a lab leaves on the host: its written state and its cgroup folders. Logs stay. Needs the lock."""
    for folder in (layout.etc, layout.var):
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            raise LabError(
                f"folder {folder}: cannot be removed",
                "something still writes to it or it holds a mount",
                f"look with `findmnt -R {folder}` and `fuser -m {folder}`",
            )
    for file in (layout.status, layout.run_record):
        file.unlink(missing_ok=True)
    remove_cgroups(_CGROUPS)


def remove_cgroups(root: Path, patience_seconds: float = 10.0) -> None:
    """Remove the lab's folder from every cgroup hierarchy, deepest first; a dying process may hold one for a moment."""
    deadline = time.monotonic() + patience_seconds
    while left := [folder for hierarchy in (root, *_hierarchies(root)) if (folder := hierarchy / CGROUP).is_dir()]:
        for top in left:
            for inner, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    Path(inner).rmdir()
        if time.monotonic() > deadline:
            raise LabError(
                f"cgroups {', '.join(map(str, left))}: cannot be removed",
                "a process of an earlier lab is still in them",
                f"cat {left[0]}/**/cgroup.procs and end those processes",
            )
        time.sleep(0.05)


def _hierarchies(root: Path) -> list[Path]:
    return [path for path in root.iterdir() if path.is_dir() and not path.is_symlink() and path.name != CGROUP]
