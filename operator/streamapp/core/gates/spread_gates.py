"""The gates of spread: how many copies of each task, in how many zones, do the pods that stay have?

Asked only of removals for good, and only where the user asks for more than one copy (`scaleDown.minCopies`,
`scaleDown.minZones`). A pod that restarts comes back, so it takes nothing away. A user can override these gates, as all
gates of coverage.
"""

from streamapp.core.evidence.capacity.floors import least_replicas, zones
from streamapp.core.evidence.coverage import CopyMap
from streamapp.core.evidence.refusal import Refusal, first_few
from streamapp.core.gates.candidates import RemovalKind
from streamapp.core.gates.case import GateInput
from streamapp.core.reasons import Reason

_KEEPS_THE_PODS = frozenset({RemovalKind.RESTART, RemovalKind.ANY_ONE})
_TAKES_NO_COPY = frozenset({*_KEEPS_THE_PODS, RemovalKind.IDLE})


def enough_pods_stay(case: GateInput) -> Refusal | None:
    """As many pods stay, and in as many zones, as each task must have copies in."""
    candidate, least = case.candidate, case.policy.min_copies or 0
    if candidate.kind in _KEEPS_THE_PODS or candidate.lowest >= least_replicas(case.evidence, candidate.target):
        return None
    if candidate.lowest < least:
        remain = f"{candidate.lowest} pod{'' if candidate.lowest == 1 else 's'} would remain"
        return Refusal(Reason.TooFewCopies, f"{remain}, and {least} copies are asked for", needs_rebalance=False)
    staying = sorted({zone for ordinal, zone in zones(case.evidence).items() if candidate.stays(ordinal)})
    detail = f"the remaining pods are in zone {first_few(staying)}, and {case.policy.min_zones} zones are asked for"
    return Refusal(Reason.TooFewZones, detail, needs_rebalance=False)


def every_task_keeps_its_copies(case: GateInput) -> Refusal | None:
    """Each stateful task runs or has a caught-up copy on as many pods that stay as the user asks for."""
    least, candidate = case.policy.min_copies, case.candidate
    if least is None or candidate.kind in _TAKES_NO_COPY or candidate.target == 0:
        return None
    copies = case.copies()
    if isinstance(copies, Refusal):
        return copies
    waits = copies.with_fewer_places(least, candidate.stays, case.policy.acceptable_recovery_lag)
    if not waits:
        return None
    fewest = waits[0].task
    kept = len(copies.places(copies.task_set[fewest], candidate.stays, case.policy.acceptable_recovery_lag))
    many = f"{fewest}" if len(waits) == 1 else f"{fewest} and {len(waits) - 1} more"
    detail = f"task {many}: {kept} of {least} copies would remain"
    return Refusal(Reason.TooFewCopies, detail, waits, needs_rebalance=_is_catching_up(case, copies))


def every_task_keeps_its_zones(case: GateInput) -> Refusal | None:
    """The copies of each stateful task on pods that stay lie in as many zones as the user asks for."""
    least, candidate = case.policy.min_zones, case.candidate
    if least is None or candidate.kind in _TAKES_NO_COPY or candidate.target == 0:
        return None
    copies = case.copies()
    if isinstance(copies, Refusal):
        return copies
    limit = case.policy.acceptable_recovery_lag
    known = zones(case.evidence)
    places = {task.id: copies.places(task, candidate.stays, limit) for task in copies.task_set.stateful}
    short = {task: found for task, found in places.items() if len({known.get(one) for one in found} - {None}) < least}
    if not short:
        return None
    unknown = sorted({ordinal for places in short.values() for ordinal in places if ordinal not in known})
    if unknown:
        return Refusal(Reason.ZonesUnknown, f"ordinal {first_few(unknown)}", needs_rebalance=False)
    task = min(short)
    many = f"{task}" if len(short) == 1 else f"{task} and {len(short) - 1} more"
    where = first_few(sorted({known[ordinal] for ordinal in short[task]})) or "none"
    detail = f"task {many}: zone {where}, and {least} zones are asked for"
    return Refusal(Reason.TooFewZones, detail, needs_rebalance=_is_catching_up(case, copies))


def _is_catching_up(case: GateInput, copies: CopyMap) -> bool:
    """A copy that is behind now may count after the next join; where no copy is, no join brings one."""
    return case.view is None and bool(copies.behind(case.policy.acceptable_recovery_lag))
