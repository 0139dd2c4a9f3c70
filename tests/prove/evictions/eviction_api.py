"""The Eviction API and the controller of disruption budgets, as Kubernetes has them.

The controller counts healthy pods some time after each change. The API refuses while the controller has not seen the
newest budget, but asks a pod that is not ready for less, and a pod that never ran for nothing.
"""

import asyncio
import random
from collections.abc import Callable  # noqa: TC003
from typing import Any

from tests.kube.object_store import ObjectStore, marked
from tests.prove.nodes_truth import wall

Json = dict[str, Any]
BUDGETS = "poddisruptionbudgets"
DISRUPTED_FOR = 120.0
"""Seconds that an evicted pod, whose deletion the controller has not seen, counts as not healthy."""
OK, TOO_MANY, FAILED, GONE = 201, 429, 500, 404


class DisruptionController:
    """Keeps the status of all budgets."""

    def __init__(self, store: ObjectStore, loop: asyncio.AbstractEventLoop, chance: random.Random) -> None:
        self._store, self._loop, self._chance = store, loop, chance
        self._is_due = False
        store.changed.append(self._changed)

    def _changed(self, plural: str, _: Json, __: Json | None) -> None:
        if plural in {"pods", BUDGETS} and not self._is_due:
            self._is_due = True
            longest = 2.0 if self._chance.random() < 0.1 else 0.3
            self._loop.call_later(self._chance.uniform(0.02, longest), self._sync)

    def _sync(self) -> None:
        self._is_due = False
        budgets = [one.body for (plural, _, _), one in sorted(self._store.objects.items()) if plural == BUDGETS]
        for budget in budgets:
            status = self._status(budget)
            if budget.get("status") != status:
                self._store.put(BUDGETS, {**budget, "status": status})

    def _status(self, budget: Json) -> Json:
        namespace, name = budget["metadata"]["namespace"], budget["metadata"]["name"]
        pods = [pod for pod in pods_of(self._store, namespace) if selects(budget, pod)]
        statefulset = self._store.get("statefulsets", namespace, name)
        expected = int(statefulset["spec"]["replicas"]) if statefulset is not None and pods else 0
        present = {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}
        disrupted = {
            pod: at
            for pod, at in budget.get("status", {}).get("disruptedPods", {}).items()
            if pod in present and self._loop.time() - at < DISRUPTED_FOR
        }
        healthy = sum(is_ready(pod) for pod in pods if pod["metadata"]["name"] in present - disrupted.keys())
        desired = max(0, expected - int(budget["spec"]["maxUnavailable"]))
        return {
            "observedGeneration": budget["metadata"]["generation"],
            "expectedPods": expected,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": max(0, healthy - desired) if expected else 0,
            "disruptedPods": disrupted,
        }


class EvictionApi:
    """The subresource `eviction` of pods."""

    def __init__(self, store: ObjectStore, loop: asyncio.AbstractEventLoop) -> None:
        self._store, self._loop = store, loop
        self.accepted: Callable[[Json], object] = lambda _: None
        """Told of each pod that runs and is about to be deleted."""

    def budget(self, namespace: str, name: str) -> Json:
        """A budget as it is now; a stand-in where there is none."""
        return self._store.get(BUDGETS, namespace, name) or {"spec": {}}

    def evict(self, namespace: str, name: str) -> tuple[int, str]:
        """Ask for an eviction; give the status of the answer, and why."""
        pod = self._store.get("pods", namespace, name)
        if pod is None:
            return GONE, "no such pod"
        if "deletionTimestamp" in pod["metadata"]:
            return OK, "it is being deleted"
        if is_pending(pod):
            self._delete(pod)
            return OK, "it never ran"
        budgets = [
            one.body
            for (plural, where, _), one in sorted(self._store.objects.items())
            if (plural, where) == (BUDGETS, namespace) and selects(one.body, pod)
        ]
        if len(budgets) > 1:
            return FAILED, "it has several budgets"
        why = self._refusal(budgets[0], pod) if budgets else ""
        if why:
            return TOO_MANY, why
        self.accepted(pod)
        self._delete(pod)
        return OK, "by its budget" if budgets else "it has no budget"

    def _refusal(self, budget: Json, pod: Json) -> str:
        """Why a budget refuses; where it does not, it counts the pod."""
        spec, status = budget["spec"], budget.get("status", {})
        if not is_ready(pod):
            if spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
                return ""
            if status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0:
                return ""
        if status.get("observedGeneration", 0) < budget["metadata"]["generation"]:
            return "the budget is being processed"
        if status["disruptionsAllowed"] <= 0:
            return f"{status['currentHealthy']} are healthy, {status['desiredHealthy']} are needed"
        disrupted = {**status["disruptedPods"], pod["metadata"]["name"]: self._loop.time()}
        less = {"disruptionsAllowed": status["disruptionsAllowed"] - 1, "disruptedPods": disrupted}
        self._store.put(BUDGETS, {**budget, "status": {**status, **less}})
        return ""

    def _delete(self, pod: Json) -> None:
        self._store.put("pods", marked(pod, wall(self._loop)))


def pods_of(store: ObjectStore, namespace: str) -> list[Json]:
    """All pods of a namespace."""
    return [
        one.body for (plural, where, _), one in sorted(store.objects.items()) if (plural, where) == ("pods", namespace)
    ]


def selects(budget: Json, pod: Json) -> bool:
    """Whether a budget is for a pod."""
    selector, labels = budget["spec"]["selector"], pod["metadata"]["labels"]
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(one["key"]) not in one["values"] for one in selector.get("matchExpressions", ())
    )


def left_out(budget: Json) -> str:
    """The name of the only pod that a budget leaves out; empty: it leaves none out, or several."""
    expressions = budget["spec"].get("selector", {}).get("matchExpressions", ())
    names = [name for one in expressions for name in one["values"]]
    return str(names[0]) if len(names) == 1 else ""


def is_ready(pod: Json) -> bool:
    """Whether its status says so."""
    conditions = pod["status"].get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def is_pending(pod: Json) -> bool:
    """Whether no container of it was ever reported."""
    return not pod["status"].get("containerStatuses")
