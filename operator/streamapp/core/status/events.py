"""How each reason appears as an Event: a name in the past tense, and whether the Event is a warning.

Called by the controller when it publishes Events, and by the command line when it reads them. Conditions, the status
and the flight record use the reason's own name.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from streamapp.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class EventReason:
    """`reason` and `type` of an Event."""

    name: str
    is_warning: bool = False


_IDLE_PODS_REMOVED = EventReason("ScaledDownIdlePods")
_PODS_REMOVED = EventReason("ScaledDown")
_OVERRIDDEN = EventReason("ScaledDownWithoutCoverage", is_warning=True)

EVENT_REASONS: Mapping[Reason, EventReason] = {
    Reason.Growing: EventReason("ScaledUp"),
    Reason.Covered: _PODS_REMOVED,
    Reason.Drained: _PODS_REMOVED,
    Reason.StoppingToZero: _PODS_REMOVED,
    Reason.OwnsNothing: _IDLE_PODS_REMOVED,
    Reason.NeverRan: _IDLE_PODS_REMOVED,
    Reason.ForcedByPolicy: _OVERRIDDEN,
    Reason.ForcedByOverride: _OVERRIDDEN,
    Reason.ForcedByTimeout: _OVERRIDDEN,
    Reason.HoldBegan: EventReason("HoldStarted"),
    Reason.HoldCancelled: EventReason("HoldCancelled"),
    Reason.StepClosed: EventReason("StepCompleted"),
    Reason.LargeDrop: EventReason("LargeDropRequested", is_warning=True),
    Reason.NoProgress: EventReason("HoldStalled", is_warning=True),
    Reason.GaveUp: EventReason("ScaleDownAbandoned", is_warning=True),
    Reason.Paused: EventReason("ScalingPaused"),
    Reason.BeingDeleted: EventReason("DeletionStarted"),
    Reason.InvalidSpec: EventReason("SpecRejected", is_warning=True),
    Reason.ForeignStatefulSet: EventReason("ForeignStatefulSetFound", is_warning=True),
    Reason.ApplicationIdTaken: EventReason("DuplicateApplicationIdFound", is_warning=True),
    Reason.AutoscalerAimsAtStatefulSet: EventReason("StatefulSetAutoscalerFound", is_warning=True),
    Reason.TwoWritersOfReplicas: EventReason("ConflictingReplicaWritersFound", is_warning=True),
    Reason.MaxIdleTimeTooLong: EventReason("MaxIdleTimeExceededRetention", is_warning=True),
    Reason.DiskRoomUnknown: EventReason("DiskSpaceNotReported"),
}
"""Every reason that the operator sends as an Event."""


def event_reason(reason: Reason) -> EventReason:
    """Return the Event for a reason; a reason that is not in the table keeps its name."""
    return EVENT_REASONS.get(reason, EventReason(reason.name))


def reasons_of_event(name: str) -> frozenset[Reason]:
    """Return the reasons that an Event of this name can have; empty if the operator does not send such an Event."""
    return frozenset(reason for reason, event in EVENT_REASONS.items() if event.name == name)
