"""Process 1 of a node of the embedded lab: prepares the node, starts its parts, starts again what ends.

Run as `python -m lab.node.supervisor STATE PROGRAMS NODE`, inside new namespaces: for the first node, which has the
API server too, by `namespaces.start`, for the second by `second`.
Its end is the end of the node, and the first node's end is that of the lab: the kernel then kills every process in the
namespace and drops every mount, so there is nothing to clean up that a kill could skip.
"""

import json
import logging
import os
import signal
import ssl
import subprocess
import sys
import time
import types
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.errors import LabError
from lab.node import configuration, isolation, namespaces, parts
from lab.node.layout import FIRST, NODES, Layout

_log = logging.getLogger("lab.supervisor")

_RESTART_DELAY_SECONDS = 1.0
_API_DEADLINE_SECONDS = 120.0
_ONCE_DEADLINE_SECONDS = 60.0
_TICK_SECONDS = 0.1


@dataclass
class Running:
    """What the status file says of one part."""

    name: str
    pid: int | None
    """Inside the lab's process-id namespace; None while it waits to be started again."""
    started_at: float
    """Seconds since the epoch."""
    restarts: int = 0
    last_exit: int | None = None
    """Exit code of the last end, negative for a signal; None if it never ended."""


class Supervisor:
    """Starts parts, reaps every child (orphans too: it is process 1) and restarts parts that ended."""

    def __init__(self, layout: Layout, programs: Path) -> None:
        self._layout = layout
        self._programs = programs
        self._parts: dict[str, parts.Part] = {}
        self._running: dict[str, Running] = {}
        self._once: dict[int, int | None] = {}
        self._phase = "preparing namespaces"
        self._stopped = False

    def run(self) -> None:
        """Bring the node up and stay until SIGTERM."""
        namespaces.introduce(self._layout, self._programs)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._enter("preparing namespaces")
        isolation.prepare(self._layout)
        if self._layout.node == FIRST:
            self._begin()
        else:
            self._join()
        self._enter("running")
        while not self._stopped:
            self._tick()

    def _join(self) -> None:
        self._enter("starting the node")
        for part in (parts.containerd(self._layout), *parts.of_the_node(self._layout, self._programs)):
            self._start(part)

    def _begin(self) -> None:
        configuration.write_all(self._layout)
        isolation.cover_resolver(self._layout)
        self._enter("starting the API server")
        for part in parts.before_the_api(self._layout, self._programs):
            self._start(part)
        self._wait_for_the_api()
        self._enter("starting the node")
        for part in parts.after_the_api(self._layout, self._programs):
            self._start(part)
        self._run_to_its_end(parts.node_manifest(self._layout, self._programs))
        for part in parts.after_the_manifest(self._layout, self._programs):
            self._start(part)

    def fail(self, error: LabError) -> None:
        """Leave the reason where `up` reads it."""
        self._phase = "failed"
        self._write_status({"what": error.what, "why": error.why, "next_step": error.next_step})

    def _enter(self, phase: str) -> None:
        self._phase = phase
        _log.info("%s", phase)
        self._write_status()

    def _start(self, part: parts.Part) -> None:
        self._parts[part.name] = part
        self._running[part.name] = Running(part.name, None, 0.0)
        self._spawn_again(part.name)

    def _spawn_again(self, name: str) -> None:
        running = self._running[name]
        running.pid, running.started_at = self._spawn(self._parts[name]), time.time()
        self._write_status()

    def _run_to_its_end(self, part: parts.Part) -> None:
        pid = self._spawn(part)
        deadline = time.monotonic() + _ONCE_DEADLINE_SECONDS
        self._once[pid] = None
        while self._once[pid] is None and time.monotonic() < deadline:
            self._tick()
        if self._once.pop(pid) != 0:
            raise LabError(
                f"{part.name}: failed",
                (self._layout.logs / f"{part.name}.log").read_text().strip() or "it did not end in time",
                f"read the logs in {self._layout.logs}",
            )

    def _spawn(self, part: parts.Part) -> int:
        with (self._layout.logs / f"{part.name}.log").open("ab") as log:
            child = subprocess.Popen(
                part.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={"PATH": os.environ["PATH"], "HOME": "/root", "GOGC": "50"},
            )
        # Popen must not wait for the child by itself: `_reap` does it for all.
        child.returncode = 0
        return child.pid

    def _tick(self) -> None:
        time.sleep(_TICK_SECONDS)
        self._reap()
        for running in self._running.values():
            if running.pid is None and time.time() - running.started_at >= _RESTART_DELAY_SECONDS:
                running.restarts += 1
                self._spawn_again(running.name)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._note_end(pid, os.waitstatus_to_exitcode(status))

    def _note_end(self, pid: int, code: int) -> None:
        if pid in self._once:
            self._once[pid] = code
        for running in self._running.values():
            if running.pid == pid:
                _log.warning("%s (process %d) ended with %d and is started again", running.name, pid, code)
                running.pid, running.last_exit, running.started_at = None, code, time.time()
                self._write_status()

    def _wait_for_the_api(self) -> None:
        context = ssl.create_default_context(cafile=str(self._layout.etc / "ca.crt"))
        # A proxy of the machine's cannot be reached from in here and must not be asked.
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        # Anonymous requests may ask for readiness, so no token is needed.
        deadline = time.monotonic() + _API_DEADLINE_SECONDS
        while time.monotonic() < deadline:
            self._tick()
            try:
                with opener.open(parts.api_server_url(), timeout=2):
                    return
            except (urllib.error.URLError, OSError):
                continue
        raise LabError(
            "kube-apiserver: not ready",
            f"no answer at {parts.api_server_url()} within {_API_DEADLINE_SECONDS:.0f} s",
            "read `python -m lab logs kube-apiserver` and `python -m lab logs etcd`",
        )

    def _write_status(self, error: dict[str, str] | None = None) -> None:
        content = {
            "phase": self._phase,
            "error": error,
            "parts": [asdict(running) for running in self._running.values()],
        }
        fresh = self._layout.status.with_suffix(".new")
        fresh.write_text(json.dumps(content))
        fresh.replace(self._layout.status)

    def _stop(self, _signal: int, _frame: types.FrameType | None) -> None:
        self._stopped = True


def main(state: Path, programs: Path, name: str) -> int:
    """Run the supervisor; the exit code is seen by nobody but the log."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    node = next(node for node in NODES if node.name == name)
    supervisor = Supervisor(Layout(state, node), programs)
    try:
        supervisor.run()
    except LabError as error:
        _log.error("%s", error)
        supervisor.fail(error)
        return 1
    except Exception as error:
        _log.exception("unforeseen")
        supervisor.fail(LabError("supervisor of the lab: ended", repr(error), "read `python -m lab logs supervisor`"))
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
