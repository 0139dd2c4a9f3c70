"""Keeps a second node in the running lab, as long as the process that asked for it lives.

Run as `python -m lab.node.second STATE` inside the lab's namespaces, by `lab.clusters.second_node`. What it reads is
the owner's order: a line `cut` takes the node's power away, and the end of the input removes the node. So the kernel
tells it of the owner's end, however that came. It answers each order with the line `done`.

The node's process 1 is in namespaces of its own below those of the lab. Its end is a power cut: nothing is written,
closed or said any more. If this process is killed, the kernel ends the node, and the next second node or `down` removes
its records and cgroups.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

from lab.errors import LabError
from lab.node import isolation, namespaces
from lab.node.layout import SECOND, Layout
from lab.settings import REPOSITORY

LINK = f"veth-{SECOND.name}"
"""The first node's end of the link between the nodes."""
CUT = "cut"
DONE = "done"
_LOCK = Path("/run/lab-second-node.lock")
_MAC_OF_NOTHING = "02:00:00:00:00:02"
_KUBECTL_SECONDS = 30
_START_SECONDS = 20.0


class SecondNode:
    """The processes and the link of the second node, from the first node's side."""

    def __init__(self, state: Path) -> None:
        self._layout = Layout(state, SECOND)
        record = json.loads(Layout(state).run_record.read_text())
        self._programs = Path(record["programs"])
        self._outer: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None

    def start(self) -> None:
        """Start the node's supervisor and link it to the first node; returns before the node is ready. LabError."""
        if self._layout.run_record.exists():
            # An earlier one was killed with its keeper.
            self._forget()
        self._clear()
        self._layout.own.mkdir(parents=True)
        with self._layout.supervisor_log.open("wb") as log:
            self._outer = subprocess.Popen(
                # The supervisor must not outlive this process.
                ("setpriv", "--pdeathsig", "KILL", *namespaces.supervisor_command(self._layout, self._programs)),
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._pid = namespaces.introduced(self._outer, self._layout).pid
        _ip("link", "add", LINK, "type", "veth", "peer", "name", isolation.UPLINK, "netns", str(self._pid))
        _ip("link", "set", LINK, "up")
        _ip("route", "add", SECOND.pods, "via", SECOND.address, "dev", LINK, "onlink")
        self._wait_for_the_parts()

    def _wait_for_the_parts(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            status = json.loads(self._layout.status.read_text()) if self._layout.status.exists() else {}
            if status.get("error"):
                raise LabError(**status["error"])
            if status.get("phase") == "running":
                return
            time.sleep(0.05)
        raise LabError(
            "second node: did not start",
            f"its parts were not started within {_START_SECONDS:.0f} s",
            f"read `python -m lab logs supervisor{SECOND.suffix}`",
        )

    def cut_power(self) -> None:
        """End the node as a power cut does; nobody is told, and no connection is closed."""
        # First the link: the kernel closes the connections of a process that it kills.
        _ip("link", "delete", LINK)
        # What is sent to the node is lost in silence, as behind a switch; without it the sender would get an error.
        _ip("route", "add", SECOND.pods, "via", SECOND.address, "dev", "cni0", "onlink")
        _ip("neighbour", "replace", SECOND.address, "lladdr", _MAC_OF_NOTHING, "dev", "cni0", "nud", "permanent")
        self._kill()
        self._layout.status.write_text(json.dumps({"phase": "without power", "error": None, "parts": []}))

    def remove(self) -> None:
        """Remove the node, alive or not, with its Node object and its pods; idempotent."""
        self._kill()
        try:
            self._forget()
        finally:
            self._clear()

    def _kill(self) -> None:
        if self._outer is None:
            return
        if self._pid is not None and self._outer.poll() is None:
            os.kill(self._pid, signal.SIGKILL)
        else:
            self._outer.kill()
        # It waits for process 1 of the node, which the kernel ends last.
        self._outer.wait()
        self._outer = self._pid = None

    def _forget(self) -> None:
        """Remove from the API server what only the node itself could have confirmed."""
        here = f"--field-selector=spec.nodeName={SECOND.name}"
        self._kubectl("delete", "node", SECOND.name, "--ignore-not-found", "--wait=false")
        self._kubectl("delete", "pods", "--all-namespaces", here, "--force", "--grace-period=0", "--wait=false")

    def _clear(self) -> None:
        subprocess.run(("ip", "link", "delete", LINK), check=False, capture_output=True)
        subprocess.run(("ip", "route", "delete", SECOND.pods), check=False, capture_output=True)
        gone = ("ip", "neighbour", "delete", SECOND.address, "dev", "cni0")
        subprocess.run(gone, check=False, capture_output=True)
        namespaces.clear_node(self._layout)
        shutil.rmtree(self._layout.own, ignore_errors=True)
        if self._layout.own.exists():
            raise LabError(
                f"folder {self._layout.own}: cannot be removed",
                "something still writes to it or it holds a mount",
                f"look with `findmnt -R {self._layout.own}`",
            )

    def _kubectl(self, *words: str) -> None:
        command = (str(self._programs / "kubectl"), f"--kubeconfig={Layout(self._layout.state).kubeconfig()}", *words)
        ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_KUBECTL_SECONDS)
        if ran.returncode:
            raise LabError(f"kubectl {' '.join(words)}: failed", ran.stderr.strip(), "look at `python -m lab status`")


def _ip(*words: str) -> None:
    ran = subprocess.run(("ip", *words), capture_output=True, text=True, check=False)
    if ran.returncode:
        raise LabError(
            f"second node: `ip {' '.join(words)}` failed",
            ran.stderr.strip() or f"exit code {ran.returncode}",
            f"read `python -m lab logs supervisor{SECOND.suffix}`",
        )


def _take_lock() -> int:
    lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise LabError(
            "second node: there already",
            "another process keeps it, or is removing it at this moment",
            "wait for that process, or end it",
        ) from None
    return lock


def _serve(node: SecondNode) -> None:
    node.start()
    _answer(DONE)
    for line in sys.stdin:
        if line.strip() == CUT:
            node.cut_power()
            _answer(DONE)


def _answer(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _end(_signal: int, _frame: types.FrameType | None) -> None:
    raise SystemExit(1)


def main(state: Path) -> int:
    """Keep the node until the input ends; an error is one line of JSON, which the owner reads."""
    signal.signal(signal.SIGTERM, _end)
    try:
        lock = _take_lock()
        node = SecondNode(state)
        try:
            _serve(node)
        finally:
            node.remove()
            os.close(lock)
    except LabError as error:
        _answer(json.dumps({"what": error.what, "why": error.why, "next_step": error.next_step}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
