"""What a condition says, taken apart again: `api.conditions.said` puts note, particulars and advice into one message.

Used by `explaining`. A reason that this version does not know stays as it was told.
"""

from streamapp.api.v1alpha1.status import ConditionStatus
from streamapp.core.reasons import Reason


def reason_of(name: str) -> Reason | None:
    """The reason of this name; None where a newer operator has given one that is not known here."""
    return Reason.__members__.get(name)


def is_overridable(reason: Reason | None) -> bool:
    """Tell whether a user can override a hold that waits for this reason; False if the reason is not known here."""
    return reason is not None and reason.row.is_overridable


def without_advice(condition: ConditionStatus) -> str:
    """The message without what a person can do, and with the reason's name."""
    reason = reason_of(condition.reason)
    message = condition.message if reason is None else condition.message.removesuffix(reason.next_step).rstrip()
    return f"{message} ({condition.reason})"


def advice_of(condition: ConditionStatus) -> str | None:
    """What a person can do; None where nothing is to be done or nobody knows."""
    reason = reason_of(condition.reason)
    if reason is None or not reason.needs_action:
        return None
    return reason.next_step
