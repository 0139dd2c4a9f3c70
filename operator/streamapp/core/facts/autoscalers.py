"""Who drives the replicas: autoscalers that aim at the StreamApp or past it, and others who write `spec.replicas` too.

Filled by the gatherer from `kube`; read by `autoscaling` and the flight record alone. Nothing that scales or restarts a
pod ever goes by it.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum


class Aim(Enum):
    """What an autoscaler scales; the value is the word for it."""

    STREAM_APP = "StreamApp"
    STATEFUL_SET = "StatefulSet"
    """Ours: past the operator, which would be asked nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    """A HorizontalPodAutoscaler of the application, made by a person or by KEDA."""

    name: str
    aim: Aim
    least: int
    """`minReplicas`."""
    most: int
    """`maxReplicas`."""
    cannot_act: str | None = None
    """Why it does not scale at present, in its own words; None where it does, or has not looked yet."""
    hindrance: str = ""
    """The reason word of the first condition in `cannot_act`, such as `FailedGetResourceMetric`; empty without one."""
    limited_by: str = ""
    """Why it wants another number than it may: the reason word of `ScalingLimited`, such as `TooFewReplicas`; empty
    where it is not limited, or has not looked yet."""
    up_window: timedelta | None = None
    """`behavior.scaleUp.stabilizationWindowSeconds`; None where the spec leaves it to Kubernetes, as of the next."""
    down_window: timedelta | None = None
    current: int | None = None
    """Replicas that it saw; None where it has not looked yet, as of the two below."""
    desired: int | None = None
    """Replicas that it wants."""
    is_active: bool | None = None
    """Whether it reckons at all; None where it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaWriters:
    """All of them."""

    autoscalers: tuple[Autoscaler, ...] = ()
    other_writers: tuple[str, ...] = ()
    """Field managers that own `spec.replicas` of the StreamApp otherwise than through its scale subresource."""

    def __post_init__(self) -> None:
        """Sort by name, so that no order means anything."""
        object.__setattr__(
            self, "autoscalers", tuple(sorted(self.autoscalers, key=lambda one: (one.name, one.aim.name)))
        )
        object.__setattr__(self, "other_writers", tuple(sorted(self.other_writers)))

    def at(self, aim: Aim) -> tuple[Autoscaler, ...]:
        """Those that aim at one of the two."""
        return tuple(one for one in self.autoscalers if one.aim is aim)


@dataclass(frozen=True, slots=True)
class ReplicaWritersUnknown:
    """The autoscalers of the namespace could not be listed; nothing waits for that."""

    why: str
    """The cause, as a sentence without its full stop."""


NOT_LISTED = ReplicaWritersUnknown("They were not listed yet")
