"""Gates that some chains do without, since what stays in those chains refuses the same facts."""

from dataclasses import replace

from hypothesis import given

from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.gates.candidates import RemovalCandidate, RemovalKind
from streamapp.core.gates.case import Gate, GateInput, input_now
from streamapp.core.gates.chains import CONVERGENCE_GATES, NEVER_RAN_GATES
from streamapp.core.gates.coverage_gates import topology_is_known
from streamapp.core.gates.evaluate import first_refusal, takes_nothing_away
from streamapp.core.gates.safety_gates import brokers_answered, group_is_stable, no_process_id_is_duplicated
from tests.builders import POLICY, a_snapshot, an_unreadable
from tests.strategies import policies, snapshots


def cases(snapshot: Snapshot, policy: ScalingPolicy) -> list[GateInput]:
    """One for each pod there is and each reading of the group."""
    evidence = Evidence(snapshot, policy)
    return [
        input_now(evidence, RemovalCandidate(kind, (pod.ordinal,)), reading)
        for pod in snapshot.workload.pods
        for reading in snapshot.readings
        for kind in (RemovalKind.NEVER_RAN, RemovalKind.RESTART)
    ]


def with_gate(gate: Gate, before: Gate, chain: tuple[Gate, ...]) -> tuple[Gate, ...]:
    at = chain.index(before)
    return (*chain[:at], gate, *chain[at:])


@given(snapshots(), policies())
def test_an_unread_group_is_refused_likewise_without_a_gate_of_its_own(
    snapshot: Snapshot, policy: ScalingPolicy
) -> None:
    of_convergence = with_gate(brokers_answered, group_is_stable, CONVERGENCE_GATES)
    of_pods_that_never_ran = with_gate(brokers_answered, no_process_id_is_duplicated, NEVER_RAN_GATES)
    for case in cases(snapshot, policy):
        assert first_refusal(CONVERGENCE_GATES, case) == first_refusal(of_convergence, case)
        assert first_refusal(NEVER_RAN_GATES, case) == first_refusal(of_pods_that_never_ran, case)
        assert brokers_answered(case) is None or not takes_nothing_away(case, ())


@given(snapshots(), policies())
def test_nothing_has_converged_whose_topology_is_unknown(snapshot: Snapshot, policy: ScalingPolicy) -> None:
    unknown = replace(snapshot, task_set=TopologyUnknown("nobody knows"))
    for case in cases(unknown, policy):
        assert isinstance(topology_is_known(case), Refusal)
        assert isinstance(first_refusal(CONVERGENCE_GATES, case), Refusal)


def test_an_unread_group_is_among_what_is_refused() -> None:
    snapshot = a_snapshot(readings=(an_unreadable(),))
    for case in cases(snapshot, POLICY):
        assert first_refusal(CONVERGENCE_GATES, case) == brokers_answered(case) != None  # noqa: E711
