"""An application whose pods go, as a StreamApp or as a plain StatefulSet, and how long its users wait."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from lab.clusters.kubectl import Kubectl, wait_until
from lab.meter.counts import CountReport
from lab.scenarios import demo_application
from lab.scenarios.demo_application import WORKLOAD, DemoApplication
from lab.scenarios.group import GroupReader
from lab.scenarios.observed_app import (
    PARTITIONS,
    ObservedApp,
    count_report,
    gap_report,
    start_all,
    wait_for_outputs,
)

RECOVERY_SECONDS = 300.0
"""Longer than a session timeout, five pods that start one after the other, and a probing rebalance."""


class DepartingApp(ABC):
    """An application under load with pods named `counter-0` and so on."""

    def __init__(self, kubectl: Kubectl, bootstrap: str, application: DemoApplication) -> None:
        """Look at an application that is, or will be, in its namespace."""
        self.kubectl = kubectl
        self.bootstrap = bootstrap
        self.application = application
        self.group = GroupReader(bootstrap, kubectl, application)

    @abstractmethod
    def start(self, replicas: int) -> None:
        """Deploy it with its preloaded state and its load."""

    @abstractmethod
    def scale(self, replicas: int) -> None:
        """Ask for so many pods."""

    @abstractmethod
    def roll(self) -> None:
        """Change the pod template in nothing that the application notices."""

    def pod(self, ordinal: int) -> dict[str, Any]:
        """The pod of an ordinal."""
        found: dict[str, Any] = self.kubectl.json(*self.of_namespace("get", f"pod/counter-{ordinal}"))
        return found

    def pods(self) -> list[dict[str, Any]]:
        """All of its pods."""
        return demo_application.pods(self.kubectl, self.application)

    def of_namespace(self, verb: str, *arguments: str) -> tuple[str, ...]:
        """Give the words of kubectl for something in its namespace."""
        return (verb, "--namespace", self.application.namespace, *arguments)

    def wait_until_settled(self, replicas: int) -> None:
        """Wait until so many ready pods share the tasks evenly, and every input so far has its output."""
        what = f"{self.application.namespace}: tasks on {replicas} pods"
        wait_until(what, lambda: self._is_spread(replicas), RECOVERY_SECONDS, 1)
        self.wait_for_outputs()

    def wait_for_outputs(self) -> None:
        """Wait until every input so far has its output."""
        wait_for_outputs(self.bootstrap, self.application, RECOVERY_SECONDS)

    def clock(self) -> int:
        """The broker's time of the newest input, in milliseconds."""
        return self.group.clock_ms(PARTITIONS)

    def worst_gap(self, began_ms: int, ended_ms: int) -> float | None:
        """The longest wait of any partition in that time, in seconds; None where that is unknown."""
        worst = gap_report(self.bootstrap, self.application, began_ms, ended_ms).worst()
        return None if worst is None else worst.seconds

    def counts(self) -> CountReport:
        """Stop the load and compare every output with the inputs."""
        demo_application.stop_load(self.kubectl, self.application)
        return count_report(self.bootstrap, self.application)

    def _is_spread(self, replicas: int) -> bool:
        pods = self.pods()
        ready = [pod for pod in pods if _is_ready(pod)]
        if not len(pods) == len(ready) == replicas:
            return False
        now = self.group.ownership()
        return now.members == replicas and now.is_even(replicas)


class Operated(DepartingApp):
    """A StreamApp."""

    def __init__(self, kubectl: Kubectl, bootstrap: str, application: DemoApplication, spec: Mapping[str, Any]) -> None:
        """Observe it; `spec` is laid over its spec."""
        super().__init__(kubectl, bootstrap, application)
        self._observed = ObservedApp.of(kubectl, bootstrap, application)
        self._spec = spec
        self._changes = 0

    def start(self, replicas: int) -> None:
        """Begin it with its load."""
        start_all({self._observed: replicas}, lambda _: self._spec)

    def scale(self, replicas: int) -> None:
        """Write the scale subresource of the StreamApp."""
        self._observed.app.scale(replicas)

    def roll(self) -> None:
        """Write another annotation each time."""
        self._changes += 1
        self._observed.change_template(changed=str(self._changes))

    def pods(self) -> list[dict[str, Any]]:
        """Those that the operator has marked."""
        return self._observed.app.pods()

    def wait_until_settled(self, replicas: int) -> None:
        """Wait, moreover, until the operator says that the application has converged."""
        super().wait_until_settled(replicas)
        self._observed.app.wait_until_converged(replicas, RECOVERY_SECONDS)


class Plain(DepartingApp):
    """A StatefulSet without an operator."""

    def start(self, replicas: int) -> None:
        """Begin it; the load waits until the state is built."""
        demo_application.preload(self.kubectl, self.application)
        demo_application.start(self.kubectl, self.application, replicas)
        self.wait_for_outputs()
        demo_application.start_load(self.kubectl, self.application)

    def scale(self, replicas: int) -> None:
        """Write the scale subresource of the StatefulSet."""
        demo_application.scale(self.kubectl, self.application, replicas)

    def roll(self) -> None:
        """Restart it as anybody would."""
        self.kubectl.run(*self.of_namespace("rollout", "restart", WORKLOAD))
        time.sleep(1)
        self.kubectl.wait_for_rollout(self.application.namespace, WORKLOAD, round(RECOVERY_SECONDS))


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = {one["type"]: one["status"] for one in pod["status"].get("conditions", ())}
    return "deletionTimestamp" not in pod["metadata"] and conditions.get("Ready") == "True"
