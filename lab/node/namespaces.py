"""The outer side of the embedded lab: start it, find it, enter it, stop it, and clear what a killed one left.

The lab is one child of `unshare`; whoever holds the lock is its supervisor, and the kernel releases that lock with the
last of its processes, however it ends. So "is it running" is never guessed from a pid file.
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
from lab.node.layout import CGROUP, NODES, Layout
from lab.settings import REPOSITORY, search_path

INSIDE = "STREAMAPP_LAB_INSIDE"
"""Set in the environment of whatever runs inside the lab's namespaces."""
_CGROUPS = Path("/sys/fs/cgroup")
_PROBE_SECONDS = 2.0


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
        if lab := _read_record(layout):
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
    lock = _open_lock(layout.start_lock)
    try:
        if not _locked(lock):
            raise LabError(
                "lab: another `up` or `down` is at work",
                f"{layout.start_lock} is locked",
                f"wait for it, or look for it with `fuser -v {layout.start_lock}`",
            )
        yield
    finally:
        os.close(lock)


def take_lock(layout: Layout) -> int:
    """Take the lab's lock and give its file descriptor, to be inherited by the supervisor; LabError if it is held."""
    _claim_state(layout)
    lock = _open_lock(layout.lock)
    # Whoever asks whether a lab is up holds the lock for the blink of an eye.
    deadline = time.monotonic() + _PROBE_SECONDS
    while not _locked(lock):
        if time.monotonic() > deadline:
            os.close(lock)
            raise up_already(layout)
        time.sleep(0.02)
    os.truncate(lock, 0)
    os.write(lock, str(layout.state).encode())
    return lock


def _claim_state(layout: Layout) -> None:
    """Make the state folder ours, or refuse one that holds somebody else's files: `clear` removes what is in it."""
    layout.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not layout.marker.exists():
        if found := sorted(path.name for path in layout.state.iterdir()):
            raise LabError(
                f"state folder {layout.state}: not the lab's",
                f"it holds {', '.join(found[:5])} and no {layout.marker.name}; the lab removes what is in its folder",
                "choose a folder that does not exist yet: STREAMAPP_LAB_STATE",
            )
        layout.marker.touch()


def _open_lock(path: Path) -> int:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


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
    shutil.rmtree(layout.logs, ignore_errors=True)
    layout.logs.mkdir(parents=True)
    with layout.supervisor_log.open("wb") as log:
        outer = subprocess.Popen(
            supervisor_command(layout, programs),
            cwd=REPOSITORY,
            env={**os.environ, "PATH": search_path()},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(lock,),
        )
    try:
        lab = introduced(outer, layout)
    except BaseException:
        outer.kill()
        outer.wait()
        raise
    # It outlives this process on purpose; without this, Popen would complain that nobody waited.
    outer.returncode = 0
    return lab


def supervisor_command(layout: Layout, programs: Path) -> tuple[str, ...]:
    """Give the words that start a node's supervisor in namespaces of its own; it ends if `unshare` is killed."""
    return (
        *("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "slave"),
        *(sys.executable, "-m", "lab.node.supervisor", str(layout.state), str(programs), layout.node.name),
    )


def introduced(outer: "subprocess.Popen[bytes]", layout: Layout) -> Lab:
    """Wait until the supervisor wrote who it is; it does so itself, so that no kill of ours comes in between."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and outer.poll() is None:
        if lab := _read_record(layout):
            return lab
        time.sleep(0.02)
    raise LabError(
        "namespaces of the lab: could not be made",
        layout.supervisor_log.read_text().strip() or "unshare ended without a word",
        "run as root, on a machine (not in a container) that allows mount, network and process-id namespaces",
    )


def introduce(layout: Layout, programs: Path) -> None:
    """Write who the supervisor is; called by itself, before it covers the `/proc` around it with its own."""
    record = {"pid": int(Path("/proc/self").readlink().name), "programs": str(programs), "since": time.time()}
    fresh = layout.run_record.with_suffix(".new")
    fresh.write_text(json.dumps(record))
    fresh.replace(layout.run_record)


def _read_record(layout: Layout) -> Lab | None:
    with contextlib.suppress(OSError, ValueError, KeyError):
        record = json.loads(layout.run_record.read_text())
        lab = Lab(record["pid"], Path(record["programs"]), record["since"])
        if lab.is_alive:
            return lab
    return None


def enter_command(lab: Lab) -> tuple[str, ...]:
    """Give the words to put before a command so that it runs inside the lab, in the current folder."""
    return enter(lab.pid)


def enter(pid: int) -> tuple[str, ...]:
    """Give these words for the namespaces of a process, which may be the second node's process 1 as the lab sees it."""
    return ("nsenter", "-t", str(pid), "-m", "-n", "-p", f"--wd={Path.cwd()}", "--")


def environment(layout: Layout, lab: Lab) -> dict[str, str]:
    """Give the environment of a command inside the lab: the parts' programs first, and the admin's kubeconfig."""
    # No proxy can be reached from inside, and kubectl would ask one for the API server's address.
    own = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return {
        **own,
        "PATH": f"{lab.programs}:{search_path()}",
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
    """Remove what a lab leaves on the host: its written state, empty folders that it made, cgroups. Needs the lock."""
    detach_devices(layout.volumes)
    for folder in (layout.etc, layout.var):
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            raise LabError(
                f"folder {folder}: cannot be removed",
                "something still writes to it or it holds a mount",
                f"look with `findmnt -R {folder}` and `fuser -m {folder}`",
            )
    if layout.made_folders.exists():
        for name in layout.made_folders.read_text().split():
            with contextlib.suppress(OSError):
                Path(name).rmdir()
    layout.made_folders.unlink(missing_ok=True)
    for node in NODES:
        clear_node(Layout(layout.state, node))


def detach_devices(folder: Path) -> None:
    """Let go of the loop devices on files of a folder: they would outlive the files."""
    listed = subprocess.run(
        ("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"), capture_output=True, text=True, check=False
    )
    for line in listed.stdout.splitlines():
        device, _, file = line.partition(" ")
        if Path(file.strip().removesuffix(" (deleted)")).is_relative_to(folder):
            subprocess.run(("losetup", "--detach", device), check=False)


def clear_node(layout: Layout) -> None:
    """Remove the records and the cgroups of a node whose processes have ended."""
    for file in (layout.status, layout.run_record):
        file.unlink(missing_ok=True)
    remove_cgroups(_CGROUPS, layout.node.cgroup)


def remove_cgroups(root: Path, name: str, patience_seconds: float = 10.0) -> None:
    """Remove a node's folder from every cgroup hierarchy, deepest first; a dying process may hold one for a moment."""
    deadline = time.monotonic() + patience_seconds
    while left := [folder for hierarchy in (root, *_hierarchies(root)) if (folder := hierarchy / name).is_dir()]:
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
