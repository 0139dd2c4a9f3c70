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


EVENT_REASONS: Mapping[Reason, EventReason] = {
    reason: EventReason(reason.row.event, is_warning=reason.row.is_warning) for reason in Reason if reason.row.event
}
"""Every reason that the operator sends as an Event."""


def event_reason(reason: Reason) -> EventReason:
    """Return the Event for a reason; a reason that is not in the table keeps its name."""
    return EVENT_REASONS.get(reason, EventReason(reason.name))


def reasons_of_event(name: str) -> frozenset[Reason]:
    """Return the reasons that an Event of this name can have; empty if the operator does not send such an Event."""
    return frozenset(reason for reason, event in EVENT_REASONS.items() if event.name == name)
