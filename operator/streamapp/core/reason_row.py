"""What a row of `reasons` says: the texts for users, and every fact that another module needs to know of a reason.

Pure. A module that treats some reasons specially reads a field here; it keeps no list of reasons.
"""

from dataclasses import KW_ONLY, dataclass
from enum import Enum

NO_ACTION = "No action needed."
"""A next step that begins so, with or without the full stop, asks nothing of the user."""


class Section(Enum):
    """The group of a reason; the value is the heading in `docs/reasons.md`."""

    CHANGES = "Changes in progress"
    USER = "Settings of the user"
    EARLIER = "An earlier change is not complete"
    FACTS = "Facts are missing, old or contradictory"
    AGENTS = "Agents and learners on demand"
    COVERAGE = "Coverage is missing or unknown"
    AUTOSCALING = "Autoscaling"
    ROLLOUTS = "Rollouts"
    EVICTIONS = "Evictions and node drains"
    STATUS = "Convergence, identity and steps"


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """Everything that is known of one reason."""

    fact: str
    """What is the case, in a sentence, without the particulars."""
    next_step: str = NO_ACTION
    """What the user can do."""
    _: KW_ONLY
    section: Section
    consequence: str = ""
    """What follows from the fact, in a sentence; part of the note."""

    # The gate, and the hold that waits for it.

    gate: str = ""
    """The function in `gates.chains` whose question this reason answers with no; empty if no gate gives the reason."""
    is_overridable: bool = False
    """A user can override a hold that waits for this reason: the reason is about coverage and not about safety."""
    wait_rank: int = 0
    """Rank among the reasons of tasks that are waited for, 1 the worst; 0 if no task waits for this reason."""
    hold_ends: str = ""
    """How a hold ends that waits for this reason, in a sentence, if that differs from the other holds."""
    change_ends: str = ""
    """How a change in progress ends that waits for this reason, in a sentence, if that differs from others."""

    # Rebalances.

    is_helped_by_rebalance: bool = False
    """The next rebalance can bring what is missing, so the operator can trigger one."""
    moves_tasks: bool = False
    """Agents show that the next rebalance moves tasks, so it can follow sooner after another one."""
    triggers_outside_hold: bool = False
    """The operator triggers the rebalance even if no scale-down waits, so that the group converges in seconds."""
    is_group_moving: bool = False
    """The group is on its way to a new assignment; how far it is says more than this reason."""

    # Steps and convergence.

    rests_on_tasks: bool = False
    """A step for this reason was allowed because the tasks are known, so its end is judged by the tasks too."""
    waits_for_template: bool = False
    """A template waits for pods, and nothing of the group moves by itself."""
    hides_convergence: bool = False
    """Whether the group has converged is unknown, not false."""

    # Rollouts.

    waits_for_user: bool = False
    """A rollout that stands still for this reason goes on when a user does something; no look at the group ends it."""
    gives_way_to_evictions: bool = False
    """No eviction waits for a rollout that stands still for this reason."""

    # Reports.

    event: str = ""
    """The name of the Event with this reason, in the past tense; empty if the operator sends none."""
    sends_event_when_found: bool = False
    """The Event is sent when condition `AutoscalingHealthy` begins to find it, and by no decision."""
    is_warning: bool = False
    """The Event with this reason is a warning and says the next step."""
    is_milestone: bool = False
    """The short history of a StreamApp shows it; other reasons come and go, and holds and steps sum them up."""
    is_root_cause: bool = False
    """Other reasons follow from this one, so that it is said before them."""
    always_needs_action: bool = False
    """The condition says the next step although its status is the healthy one."""
