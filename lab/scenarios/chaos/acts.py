"""How each danger is brought about on the real parts. An act that finds nothing to strike says so and is skipped."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lab.clusters.kubectl import Kubectl
from lab.errors import LabError
from lab.node.layout import FIRST, NODES, Layout
from lab.scenarios import operator_deployment
from lab.scenarios.chaos.losable_node import LosableNode
from lab.scenarios.chaos.script import Act, Danger
from lab.scenarios.faults import fill_memory, frozen_container, kill_container, slow_part
from lab.scenarios.observed_app import ObservedApp
from lab.settings import Settings

_ATTEMPT_SECONDS = 60
_COMMAND_SECONDS = 120.0
_DONE = "done"


class SkippedError(Exception):
    """There is nothing to strike: the pod is not there, or the node is being drained already."""


@dataclass
class Actor:
    """Does what the script says, each act in a thread of its caller."""

    kubectl: Kubectl
    applications: Mapping[str, ObservedApp]
    second_node: LosableNode
    drains_end: threading.Event = field(default_factory=threading.Event)
    """Set when no drain is to go on, whether its node is empty or not."""
    _drain: threading.Lock = field(default_factory=threading.Lock)
    _templates: int = 0

    def perform(self, act: Act) -> str:
        """Do it, and say in a few words what came of it; SkippedError if there was nothing to strike."""
        deeds: Mapping[Danger, Callable[[Act], str]] = {
            Danger.REPLICAS: self._scale,
            Danger.KILL: partial(self._strike, kill_container),
            Danger.OUT_OF_MEMORY: partial(self._strike, partial(fill_memory, self.kubectl)),
            Danger.DELETE: self._delete,
            Danger.EVICT: self._evict,
            Danger.DRAIN: self._drain_node,
            Danger.ROLLOUT: self._roll,
            Danger.RESTART: self._restart,
            Danger.RESTART_ANEW: partial(self._restart, options=("--new-volume",)),
            Danger.OPERATOR_KILLED: self._kill_operator,
            Danger.OPERATOR_FROZEN: self._freeze_operator,
            Danger.BROKER_FROZEN: self._freeze_broker,
            Danger.SLOW_API: self._slow_api,
            Danger.NODE_LOST: self._lose_node,
        }
        return deeds[act.danger](act)

    def _scale(self, act: Act) -> str:
        self._app(act).app.scale(act.number)
        return _DONE

    def _strike(self, how: Callable[[dict[str, Any]], None], act: Act) -> str:
        pod = self._pod(act)
        if "running" not in pod["status"].get("containerStatuses", [{}])[0].get("state", {}):
            raise SkippedError("its container does not run")
        try:
            how(pod)
        except subprocess.CalledProcessError as error:
            raise SkippedError("its container had just ended") from error
        return _DONE

    def _delete(self, act: Act) -> str:
        self._pod(act)
        self.kubectl.run("delete", *self._named(act), "--wait=false")
        return _DONE

    def _evict(self, act: Act) -> str:
        """Ask once, as a descheduler does."""
        self._pod(act)
        name, namespace = f"counter-{act.number}", self._app(act).app.namespace
        path = f"--raw=/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        metadata = {"name": name, "namespace": namespace}
        body = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata})
        try:
            self.kubectl.run("create", path, "--filename=-", stdin=body)
        except LabError as error:
            return "refused" if "disruption budget" in error.why else f"failed: {error.why}"
        return "accepted"

    def _drain_node(self, act: Act) -> str:
        """Drain as an administrator does, who runs the command again as long as it ends with an error."""
        if not self._drain.acquire(blocking=False):
            raise SkippedError("another node is being drained, or lost")
        name, began = NODES[act.number].name, time.monotonic()
        try:
            while not self.drains_end.is_set():
                if self._is_emptied(name):
                    return f"empty after {time.monotonic() - began:.0f} s"
                time.sleep(1)
        finally:
            self._uncordon(name)
            self._drain.release()
        raise LabError(f"drain of node {name}: did not end", "pods of StreamApps are still there", "read `explain`")

    def _is_emptied(self, name: str) -> bool:
        those = ("--pod-selector=streamapp.dev/app", "--ignore-daemonsets", "--delete-emptydir-data")
        try:
            self.kubectl.run(
                *("drain", name, *those, f"--timeout={_ATTEMPT_SECONDS}s"), timeout_seconds=_ATTEMPT_SECONDS + 30
            )
        except LabError:
            return False
        return True

    def _uncordon(self, name: str) -> None:
        while True:
            try:
                self.kubectl.run("uncordon", name)
            except LabError:
                time.sleep(1)
            else:
                return

    def _roll(self, act: Act) -> str:
        self._templates += 1
        self._app(act).change_template(chaos=str(self._templates))
        return _DONE

    def _restart(self, act: Act, options: Sequence[str] = ()) -> str:
        """Run the plugin's own command, which may refuse."""
        self._pod(act)
        words = ("restart", "counter", "--ordinal", str(act.number), "--namespace", self._app(act).app.namespace)
        ran = self.kubectl.session.run(
            *(sys.executable, "-m", "streamapp.cli", *words, "--yes", *options),
            stdin=None,
            timeout_seconds=_COMMAND_SECONDS,
        )
        return _DONE if ran.returncode == 0 else f"refused: {(ran.stderr or ran.stdout).strip().splitlines()[-1]}"

    def _kill_operator(self, _: Act) -> str:
        leader = self._leader()
        target = ("--namespace", operator_deployment.NAMESPACE, leader["metadata"]["name"])
        self.kubectl.run("delete", "pod", *target, "--grace-period=0", "--force", "--wait=false")
        return _DONE

    def _freeze_operator(self, act: Act) -> str:
        return _freeze(self._leader(), act.seconds)

    def _freeze_broker(self, act: Act) -> str:
        return _freeze(self.kubectl.json("get", "--namespace", "kafka", "pod/kafka-0"), act.seconds)

    def _slow_api(self, act: Act) -> str:
        slow_part(Layout(Settings.from_environment().state, FIRST), "kube-apiserver", act.seconds)
        return f"for {act.seconds:.0f} s"

    def _lose_node(self, act: Act) -> str:
        """Not while a node is being drained, whose pods would have no place to go to; nor is one drained meanwhile."""
        if not self._drain.acquire(blocking=False):
            raise SkippedError("a node is being drained")
        began = time.monotonic()
        try:
            self.second_node.lose(act.seconds)
        finally:
            self._drain.release()
        return f"another node after {time.monotonic() - began:.0f} s"

    def _leader(self) -> dict[str, Any]:
        found = operator_deployment.pods(self.kubectl).get(operator_deployment.leader(self.kubectl))
        if found is None:
            raise SkippedError("nobody leads")
        return found

    def _app(self, act: Act) -> ObservedApp:
        return self.applications[act.application or ""]

    def _named(self, act: Act) -> tuple[str, ...]:
        return ("--namespace", self._app(act).app.namespace, f"pod/counter-{act.number}")

    def _pod(self, act: Act) -> dict[str, Any]:
        found = self.kubectl.run("get", *self._named(act), "--ignore-not-found", "--output=name")
        if not found.strip():
            raise SkippedError("there is no such pod")
        pod: dict[str, Any] = self.kubectl.json("get", *self._named(act))
        if "deletionTimestamp" in pod["metadata"]:
            raise SkippedError("the pod is ending")
        return pod


def _freeze(pod: Mapping[str, Any], seconds: float) -> str:
    try:
        with frozen_container(pod):
            time.sleep(seconds)
    except subprocess.CalledProcessError as error:
        raise SkippedError("its container had just ended") from error
    return f"for {seconds:.0f} s"
