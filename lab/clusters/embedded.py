"""The embedded cluster: the node of `lab.node`, with images of `lab.build` and the broker in it."""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import preflight
from lab.build.cache import Cache
from lab.build.chart_tools import build_helm
from lab.build.images import BuiltImage
from lab.build.plan import Built, build_all
from lab.clusters import broker
from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.errors import LabError
from lab.node import namespaces
from lab.node.layout import FIRST, SECOND, Layout, Node
from lab.node.usage import proc_of
from lab.settings import Settings
from lab.terminal import progress, step

_START_DEADLINE_SECONDS = 180.0
_IMPORT_SECONDS = 300.0


@dataclass(frozen=True)
class NodeStatus:
    """What a node's supervisor wrote, and where its processes are seen."""

    node: Node
    status: dict[str, Any]
    proc: Path
    """The `/proc` in which the status file's process ids hold."""


class EmbeddedCluster:
    """One node in namespaces of this machine; one a machine, held by a lock."""

    name = "embedded"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.layout = Layout(settings.state)

    def up(self) -> None:
        """Check the machine, build what is missing, start the node, deploy the broker."""
        _only_outside()
        preflight.check_machine(self._settings)
        with namespaces.starting(self.layout):
            if lab := namespaces.find(self.layout):
                if self.layout.complete.exists():
                    raise namespaces.up_already(self.layout)
                progress.print("An earlier `up` did not come to its end; starting over.")
                namespaces.stop(self.layout, lab)
            built = self.start_node()
            try:
                self._fill(built)
            except LabError:
                progress.print("The node stays up for a look: `python -m lab status`; `python -m lab down` removes it.")
                raise
            self.layout.complete.touch()

    def start_node(self) -> Built:
        """Build what is missing and start an empty node, without images and broker; LabError if one is there."""
        built = build_all(self._settings)
        lock = namespaces.take_lock(self.layout)
        try:
            namespaces.clear(self.layout)
            with step("start the node"):
                self._wait_for_the_parts(namespaces.start(self.layout, built.bin, lock))
        finally:
            os.close(lock)
        return built

    def build(self) -> None:
        """Check the machine and build what is missing, without starting anything."""
        preflight.check_machine(self._settings)
        build_all(self._settings)

    def ensure_up(self) -> None:
        """Bring it up, or bring the images of a running one up to date."""
        _only_outside()
        preflight.check_root(os.geteuid())
        if namespaces.find(self.layout) is None or not self.layout.complete.exists():
            self.up()
        else:
            self._fill(build_all(self._settings))

    def down(self) -> None:
        """End the node and remove all that it wrote, but its logs."""
        _only_outside()
        preflight.check_root(os.geteuid())
        with namespaces.starting(self.layout):
            if lab := namespaces.find(self.layout):
                with step("stop the lab"):
                    namespaces.stop(self.layout, lab)
            lock = namespaces.take_lock(self.layout)
            try:
                namespaces.clear(self.layout)
            finally:
                os.close(lock)

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Enter the lab's namespaces; a command that runs inside already needs no further step."""
        if _is_inside():
            yield Session((), dict(os.environ))
            return
        yield Session(namespaces.enter_command(self._running()), self._environment())

    def skipped(self) -> Sequence[str]:
        """Say what the embedded node cannot show."""
        return ("NetworkPolicy: the bridge network enforces none",)

    def status(self) -> dict[str, Any]:
        """Give the supervisor's status file; LabError if the lab is not up."""
        self._running()
        if not self.layout.status.exists():
            return {"phase": "starting", "error": None, "parts": []}
        status: dict[str, Any] = json.loads(self.layout.status.read_text())
        return status

    def nodes(self) -> list[NodeStatus]:
        """Give the first node, and the second one if it is there; LabError if the lab is not up."""
        first = NodeStatus(FIRST, self.status(), proc_of(Path("/proc"), self._running().pid))
        second = Layout(self.layout.state, SECOND)
        if not second.status.exists() or not second.run_record.exists():
            return [first]
        proc = proc_of(first.proc, json.loads(second.run_record.read_text())["pid"])
        return [first, NodeStatus(SECOND, json.loads(second.status.read_text()), proc)]

    def _running(self) -> namespaces.Lab:
        _only_outside()
        preflight.check_root(os.geteuid())
        lab = namespaces.find(self.layout)
        if lab is None:
            raise LabError(
                "lab: not up",
                f"nothing holds its lock, {self.layout.lock}",
                "start it with `make lab-up` (or `python -m lab up`)",
            )
        return lab

    def _environment(self) -> dict[str, str]:
        found = namespaces.environment(self.layout, self._running())
        helm = build_helm(self._settings.versions, Cache(self._settings.cache))
        return {**found, "PATH": f"{helm}:{found['PATH']}", "KAFKA_BOOTSTRAP": broker.IN_CLUSTER_BOOTSTRAP}

    def _wait_for_the_parts(self, lab: namespaces.Lab) -> None:
        deadline = time.monotonic() + _START_DEADLINE_SECONDS
        cause = f"its parts were not up within {_START_DEADLINE_SECONDS:.0f} s"
        while time.monotonic() < deadline:
            # Asked before the status is read: a supervisor that failed writes why before it ends.
            alive = lab.is_alive
            status = json.loads(self.layout.status.read_text()) if self.layout.status.exists() else {}
            if status.get("error"):
                raise LabError(**status["error"])
            if status.get("phase") == "running" and alive:
                return
            if not alive:
                cause = f"its process 1 ended while {status.get('phase', 'starting')}"
                break
            time.sleep(0.1)
        raise LabError(
            "node of the lab: did not start",
            f"{cause}\n{self.layout.supervisor_log.read_text()[-2000:]}".strip(),
            "read `python -m lab logs supervisor`, then try again",
        )

    def _fill(self, built: Built) -> None:
        with self.session() as session:
            kubectl = Kubectl(session)
            with step("node ready"):
                wait_until("node of the lab ready", lambda: _node_ready(kubectl), 60)
            changed = self._import_images(built, session)
            with step("broker ready"):
                broker.deploy(kubectl, restart=built.images["kafka"].reference in changed)
            with step("metrics answer"):
                wait_until("metrics of the node", lambda: _metrics_answer(kubectl), 90, interval_seconds=1)

    def _import_images(self, built: Built, session: Session) -> set[str]:
        """Import what is new and give its names; pods that run an older image of the same name go on with it."""
        return {image.reference for image in built.images.values() if import_image(self.layout, image, session)}


def import_image(layout: Layout, image: BuiltImage, session: Session) -> bool:
    """Give containerd an image, from wherever the session begins; tell whether that was new to it. LabError."""
    record = layout.imported
    imported: dict[str, str] = json.loads(record.read_text()) if record.exists() else {}
    # The archive's path carries the hash of its content.
    if imported.get(image.reference) == str(image.archive):
        return False
    command = ("ctr", "--address", str(layout.containerd_socket), "--namespace", "k8s.io", "images", "import")
    with step(f"import {image.reference}"):
        ran = session.run(*command, str(image.archive), stdin=None, timeout_seconds=_IMPORT_SECONDS)
    if ran.returncode:
        raise LabError(
            f"image {image.reference}: containerd does not take it",
            ran.stderr.strip(),
            f"delete {image.archive.parent} to have it built again, and read `python -m lab logs containerd`",
        )
    record.write_text(json.dumps({**imported, image.reference: str(image.archive)}))
    return True


def _is_inside() -> bool:
    return namespaces.INSIDE in os.environ


def _only_outside() -> None:
    if _is_inside():
        raise LabError(
            "lab: this shell is inside it",
            "from in here neither its lock nor its processes can be seen as the machine sees them",
            "leave it (`exit`), or run the command in another shell",
        )


def _node_ready(kubectl: Kubectl) -> bool:
    nodes = kubectl.json("get", "nodes")["items"]
    conditions = [condition for node in nodes for condition in node["status"]["conditions"]]
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _metrics_answer(kubectl: Kubectl) -> bool:
    return bool(json.loads(kubectl.run("get", "--raw=/apis/metrics.k8s.io/v1beta1/nodes"))["items"])
