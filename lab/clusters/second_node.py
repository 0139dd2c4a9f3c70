"""A second node for a while: for the tests that drain or lose one, and for users who want to look at it.

The one door to it is `second_node`. Whatever happens to the caller, the node goes with it (`lab.node.second`).
"""

import json
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.errors import LabError
from lab.node import namespaces
from lab.node.layout import SECOND, Layout
from lab.node.second import CUT, DONE
from lab.settings import REPOSITORY
from lab.terminal import step

_READY_SECONDS = 60.0
_IMPORT_SECONDS = 300.0
_END_SECONDS = 60.0


@dataclass(frozen=True)
class SecondNode:
    """The second node, as its owner sees it."""

    kubectl: Kubectl
    layout: Layout
    _keeper: "subprocess.Popen[str]"

    @property
    def name(self) -> str:
        """Name of the Node object."""
        return self.layout.node.name

    def drain(self, timeout_seconds: int = 120) -> None:
        """Cordon the node and evict its pods, as `kubectl drain` does; a closed PodDisruptionBudget makes it wait."""
        options = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", f"--timeout={timeout_seconds}s")
        self.kubectl.run("drain", self.name, *options, timeout_seconds=timeout_seconds + 30)

    def wait(self) -> None:
        """Wait until the node ends by itself, because its keeper was killed or the lab went down."""
        self._keeper.wait()

    def cut_power(self) -> None:
        """End every process of the node at once, link first: connections stay open, packets are lost in silence.

        The Node object and its pods stay, as after a power cut, until the node is removed.
        """
        _stream(self._keeper.stdin).write(f"{CUT}\n")
        _stream(self._keeper.stdin).flush()
        _expect_done(self._keeper)


@contextmanager
def second_node(session: Session, layout: Layout, images: Collection[str] | None = None) -> Iterator[SecondNode]:
    """Give a second node that is ready, with images; at the end it is removed, with its pods and its Node object.

    `images` are short names such as `kafka`, None for all that the first node has. Pods that must end in order need
    `drain` before the end.
    """
    kubectl = Kubectl(session)
    keeper = subprocess.Popen(
        (*session.prefix, sys.executable, "-m", "lab.node.second", str(layout.state)),
        env={**session.environment, "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A Ctrl-C is for the owner alone, whose end is the node's.
        start_new_session=True,
    )
    node = SecondNode(kubectl, Layout(layout.state, SECOND), keeper)
    try:
        with step("start the second node"):
            _expect_done(keeper)
        _import_images(session, node.layout, images)
        with step("second node ready"):
            wait_until("second node ready", lambda: _is_ready(kubectl, node.name), _READY_SECONDS)
        yield node
    except BaseException:
        # The first error is the one that counts.
        with suppress(LabError):
            _end(keeper)
        raise
    _end(keeper)


def enter(layout: Layout) -> tuple[str, ...]:
    """Give the words that run a command in a node's namespaces, for a process that is in the lab's already."""
    if layout.node != SECOND:
        return ()
    # The record has the process id that the lab knows.
    return namespaces.enter(json.loads(layout.run_record.read_text())["pid"])


def _import_images(session: Session, layout: Layout, names: Collection[str] | None) -> None:
    """Give the node's containerd the archives that the first node's containerd has."""
    archives: dict[str, str] = json.loads(layout.imported.read_text())
    chosen = [
        (reference, archive)
        for reference, archive in archives.items()
        if names is None or reference.rpartition("/")[2].partition(":")[0] in {"pause", *names}
    ]
    for reference, archive in chosen:
        with step(f"import {reference} on the second node"):
            command = ("ctr", "--namespace", "k8s.io", "images", "import", archive)
            ran = session.run(*enter(layout), *command, stdin=None, timeout_seconds=_IMPORT_SECONDS)
        if ran.returncode:
            raise LabError(
                f"image {reference}: the second node's containerd does not take it",
                ran.stderr.strip(),
                f"read `python -m lab logs containerd{layout.node.suffix}`",
            )


def _is_ready(kubectl: Kubectl, name: str) -> bool:
    node = kubectl.json("get", "node", name)
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])
    return ready and not node["spec"].get("taints")


def _expect_done(keeper: "subprocess.Popen[str]") -> None:
    answer = _stream(keeper.stdout).readline().strip()
    if answer == DONE:
        return
    raise _failure(answer, keeper.wait(timeout=_END_SECONDS))


def _end(keeper: "subprocess.Popen[str]") -> None:
    """Close the keeper's input, which is its order to remove the node, and wait for its end."""
    with keeper:
        _stream(keeper.stdin).close()
        answer = _stream(keeper.stdout).read().strip()
        if code := keeper.wait(timeout=_END_SECONDS):
            raise _failure(answer, code)


def _failure(answer: str, code: int) -> LabError:
    """Give what the keeper said, or that it was ended before it could say anything."""
    if answer:
        return LabError(**json.loads(answer))
    return LabError(
        "second node: its keeper was ended",
        f"exit code {code}",
        f"read `python -m lab logs supervisor{SECOND.suffix}`; the next second node, or `down`, removes what is left",
    )


def _stream(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise TypeError("the keeper was started without its pipes")
    return stream
