"""What a HorizontalPodAutoscaler wishes for: the formulas of Kubernetes' `replica_calculator.go`, ported. Pure.

As far as they matter to a StreamApp: a metric per pod (CPU time), an external metric by `Value` and by `AverageValue`.
Left out: limits, policies, stabilization windows, which come after; metrics that are missing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far from its target a metric may be without anything being done; `behavior.*.tolerance`."""

    up: Fraction
    down: Fraction

    def spares(self, ratio: Fraction) -> bool:
        """Tell whether nothing is to be done."""
        return 1 - self.down <= ratio <= 1 + self.up


DEFAULT = Tolerance(Fraction(1, 10), Fraction(1, 10))
RECOMMENDED = Tolerance(Fraction(2, 100), Fraction(2, 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The scale subresource: what an autoscaler reads of its target."""

    spec: int
    """`spec.replicas`: its own last wish."""
    status: int
    """`status.replicas`: of a StreamApp, the pods that exist."""


@dataclass(frozen=True, slots=True)
class PodUsage:
    """One pod that the selector finds."""

    load: Fraction
    """Its usage as a share of the target: 1 is what it is meant to bear."""
    ready: bool = True
    """False for a pod that was never ready, or is not within five minutes of its start."""


def by_pods(scale: Scale, pods: Sequence[PodUsage], tolerance: Tolerance) -> int:
    """Resource, ContainerResource and Pods metrics: `GetResourceReplicas`."""
    ready = [pod for pod in pods if pod.ready]
    unready = len(pods) - len(ready)
    ratio = sum((pod.load for pod in ready), Fraction(0)) / len(ready)
    if not (unready and ratio > 1):
        return scale.spec if tolerance.spares(ratio) else math.ceil(ratio * len(ready))
    # Towards more, a pod that is not ready counts, as one that bears nothing.
    anew = ratio * len(ready) / len(pods)
    if tolerance.spares(anew) or anew < 1:
        return scale.spec
    return max(scale.spec, math.ceil(anew * len(pods)))


def by_value(scale: Scale, total: Fraction, ready: int, tolerance: Tolerance) -> int:
    """External and Object metrics with `type: Value`, where the target is what the present pods bear together."""
    ratio = total / ready
    return scale.spec if tolerance.spares(ratio) else math.ceil(ratio * ready)


def by_average_value(scale: Scale, total: Fraction, tolerance: Tolerance) -> int:
    """External and Object metrics with `type: AverageValue`: `GetExternalPerPodMetricReplicas`."""
    return scale.status if tolerance.spares(total / scale.status) else math.ceil(total)
