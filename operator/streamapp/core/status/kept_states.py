"""Records what lies on the volumes of pods that this plan removes: `plan` predicts with it when they come back.

Called by `decide`. Nothing waits for it, and no decision rests on it.
"""

from streamapp.core.actions.decision import GrantReplicas, Plan, RecordState
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.workload import KeptState
from streamapp.core.status.task_table import positions_on


def kept_states(evidence: Evidence, plan: Plan) -> Plan:
    """Give one step for each volume that loses its pod, as far as its state is known.

    Args:
        evidence: What the plan rests on.
        plan: What the pass does.
    """
    removal = next((step for step in plan if isinstance(step, GrantReplicas) and step.is_removal), None)
    if removal is None:
        return ()
    snapshot = evidence.snapshot
    volumes = {volume.ordinal for volume in snapshot.workload.volumes if volume.process_id is not None}
    going = {Ordinal(number) for number in range(removal.to_replicas, removal.from_replicas)} & volumes
    if not going:
        return ()
    found = positions_on(evidence, going)
    return tuple(
        RecordState(ordinal=ordinal, state=KeptState(snapshot.now, positions), reason=removal.reason)
        for ordinal, positions in sorted(found.items())
    )
