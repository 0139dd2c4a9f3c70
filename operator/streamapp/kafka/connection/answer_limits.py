"""How much of a broker's answers the operator takes, before and after the broker has accepted its credentials.

Used by `connection`; the controller gives each cluster an owner and all clusters one budget.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

from streamapp.kafka.connection.large_answers import MOST_VALUES
from streamapp.wire.byte_budget import ByteBudget

MOST_BYTES = 16 * 1024 * 1024
"""A description of 200 members of 5,000 tasks has about 5 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLimits:
    """Bounds for the answers of the brokers of one application."""

    most_bytes: int = MOST_BYTES
    """Of one answer, after the login."""
    each_before_login: int = 64 * 1024
    """Of one answer before it: the list of requests that a broker knows has some 600 bytes."""
    before_login: int = 256 * 1024
    """Of all answers before it together, for each connection."""
    most_values: int = MOST_VALUES
    """Array elements in one answer."""
    budget: ByteBudget = field(default_factory=ByteBudget)
    """Of all applications together."""
    owner: Hashable = None
    """Whose answers these are in the budget."""


DEFAULT_LIMITS = AnswerLimits()
