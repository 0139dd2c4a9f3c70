"""What a decision wants of its cluster's budget: a place while its learners learn, or a turn in the queue.

A drain that agents know already is a claim by itself: an operator that takes over finds it there, and calls nothing
off. Called by `decide`; the controller books the claim.
"""

from collections.abc import Iterable

from streamapp.core.actions.announcement import Leaving, drained_now, wanted_to_leave
from streamapp.core.actions.decision import RestoreClaim, RestoreNeed, Verdict
from streamapp.core.actions.plan import PlanBuilder
from streamapp.core.evidence.coverage import TaskWait
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.learner_source import announced_pods
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.hold_record import HoldRecord, RaiseState
from streamapp.core.gates.candidates import stateful_tasks
from streamapp.core.gates.drain_gates import pods_without_copies
from streamapp.core.reasons import Reason

NO_CLAIM = RestoreClaim()


def restore_claim(draft: PlanBuilder) -> RestoreClaim:
    """The claim; none without a limit, and where nothing leaves."""
    snapshot = draft.snapshot
    if not snapshot.place.most:
        return NO_CLAIM
    if snapshot.app.dry_run or draft.outcome.verdict is Verdict.STALLED:
        return _of_what_has_begun(draft)
    first = draft.restart_or_eviction
    refusal = first if isinstance(first, Refusal) else draft.disruptions.waits_for
    waits = draft.outcome.waits or (() if refusal is None else refusal.waits)
    need = _of_raised_standbys(draft, refusal)
    if need is RestoreNeed.NONE:
        need = _of_a_drain(draft.evidence, draft.leaving)
    if need is RestoreNeed.NONE:
        return NO_CLAIM
    return RestoreClaim(
        need=need, leaving=wanted_to_leave(draft.evidence, draft.leaving), records_to_go=_records_to_go(waits)
    )


def _of_what_has_begun(draft: PlanBuilder) -> RestoreClaim:
    """While nothing is prepared: agents go on with learners until the announcement ends, whatever was refused.

    An invalid spec does not say that there are agents. So none was asked, and a place that is held stays held.
    """
    is_unknown = draft.snapshot.place.is_held and draft.snapshot.agents is None
    needs = (_of_raised_standbys(draft, None), _of_a_drain(draft.evidence, Leaving()))
    return RestoreClaim(need=RestoreNeed.LEARNING) if is_unknown or RestoreNeed.LEARNING in needs else NO_CLAIM


def _of_raised_standbys(draft: PlanBuilder, waiting: Refusal | None) -> RestoreNeed:
    """In a group of the streams protocol: until the standbys are put back, or are another hand's."""
    record = draft.record
    raised = record.standbys if isinstance(record, HoldRecord) else None
    if raised is not None and raised.state not in {RaiseState.RETURNED, RaiseState.FOREIGN}:
        return RestoreNeed.LEARNING
    reasons = {draft.outcome.reason, None if waiting is None else waiting.reason}
    return RestoreNeed.WAITING if Reason.RestoreBudgetUsed in reasons else RestoreNeed.NONE


def _of_a_drain(evidence: Evidence, leaving: Leaving) -> RestoreNeed:
    """Until the pods that leave hold no task with state: learners that are caught up can fall behind again.

    Pods that agents know to leave count, even if the decision wants them to stay: until the agents know it, too.
    Where a place was only found to be held, the others that are to leave wait like those of everybody else.
    """
    place, known = evidence.snapshot.place, announced_pods(evidence)
    if place.is_held:
        pods = wanted_to_leave(evidence, leaving) | known if place.is_free else known
        # A group without members shows what no pod holds: a new coordinator can show it as it was before they joined.
        is_shown = evidence.latest is not None and bool(evidence.latest.group.members)
        holds = not is_shown or any(stateful_tasks(evidence, ordinal) for ordinal in pods)
        if pods and holds:
            return RestoreNeed.LEARNING
        if place.is_free:
            return RestoreNeed.NONE
    elif known and pods_without_copies(evidence, known):
        return RestoreNeed.LEARNING
    if not pods_without_copies(evidence, drained_now(evidence, leaving)):
        return RestoreNeed.NONE
    return RestoreNeed.LEARNING if place.is_free else RestoreNeed.WAITING


def _records_to_go(waits: Iterable[TaskWait]) -> int | None:
    counts = [wait.records_to_go for wait in waits]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
