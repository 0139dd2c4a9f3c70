"""How a reason appears as an Event: under a name of its own, in the past tense.

Called by the controller when it publishes Events, and by the command line when it reads them. Conditions, the status
and the flight record use the reason's own name.
"""

from streamapp.core.reasons import Reason


def event_of(reason: Reason) -> str:
    """Return the name of the Event for a reason; without one in its row, the reason's own."""
    return reason.row.event or reason.name


def reasons_of_event(name: str) -> frozenset[Reason]:
    """Return the reasons that an Event of this name can have; empty if the operator does not send such an Event."""
    return frozenset(reason for reason in Reason if reason.row.event == name)
