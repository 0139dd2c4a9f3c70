"""What one branch of the decision wants, before it is brought together with what goes on beside it.

Made by `scale_down` and by the short branches in `decide`; only `decide` reads it.
"""

from dataclasses import dataclass

from streamapp.core.actions.decision import Event, Verdict
from streamapp.core.evidence.coverage import TaskWait
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.hold_record import Hold, OpenStep
from streamapp.core.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Another number of replicas, either way."""

    to_replicas: int
    step: OpenStep | None = None
    """For a removal whose end must be watched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchResult:
    """A branch's answer."""

    verdict: Verdict
    reason: Reason
    detail: str = ""
    waits: tuple[TaskWait, ...] = ()
    hold: Hold | None = None
    """The part of the hold record that says why pods are kept; None: no scale-down is under way."""
    staying: int | None = None
    """Replicas that will stay in the end, where pods are about to leave."""
    drained: int | None = None
    """Pods from this ordinal on are to be drained, where learners come on demand; None: none are."""
    grant: Grant | None = None
    create: int | None = None
    """Replicas of a StatefulSet to be created."""
    could_be_nudged: Refusal | None = None
    """What is missing that a rebalance may bring."""
    events: tuple[Event, ...] = ()
