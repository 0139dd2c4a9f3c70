"""Chooses the topology: the text of the spec, or the text on which all agents agree.

Called by `agents.poller` and `reconcile.gather`. The agents report the topology that really runs. While pods run
different topologies, that which has all of the others is in force, or else the last common one. No pod is removed.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from streamapp.agents.answers import AgentReading
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.facts.topology import Topology, parse_topology
from streamapp.core.facts.workload import Pod, Workload


@lru_cache(maxsize=64)
def _parsed(text: str) -> Topology | TopologyUnknown:
    return parse_topology(text)


def common_topology(readings: Sequence[AgentReading]) -> str:
    """The text that all these agents report, or that of one which has all that the others have; else empty.

    While a new template brings more sub-topologies, pods report different ones.
    """
    texts = sorted({read.topology or "" for read in readings})
    known = [(text, topology) for text in texts if isinstance(topology := _parsed(text), Topology)]
    if len(known) < len(texts):
        return ""
    return next((text for text, whole in known if all(_has_all_of(whole, part) for _, part in known)), "")


def topology_in_force(before: str, reported: str, pods: Iterable[Pod]) -> str:
    """The text that is gone by; a larger one stays while a template changes, since its pod may just not run.

    A pod that crashes again and again would change the topology each time, and no reading would become old enough.
    """
    whole, part = _parsed(before), _parsed(reported)
    is_of_two_templates = len({pod.revision for pod in pods}) > 1
    has_more = isinstance(whole, Topology) and isinstance(part, Topology) and _has_all_of(whole, part)
    return before if not reported or (is_of_two_templates and has_more) else reported


def _has_all_of(whole: Topology, part: Topology) -> bool:
    return whole.sinks >= part.sinks and all(each in whole.subtopologies for each in part.subtopologies)


def contradiction(in_spec: str, reported: str, workload: Workload) -> TopologyUnknown | None:
    """What is wrong where spec and agents do not say the same; None where they do, or while pods change templates."""
    if not in_spec.strip() or not reported or not _is_one_template(workload):
        return None
    written = _parsed(in_spec)
    if isinstance(written, TopologyUnknown) or written == _parsed(reported):
        return None
    return TopologyUnknown(
        f"spec.topology is not what the agents say that runs ({_difference(written, _parsed(reported))}); renew it, or "
        "leave it out: then the agents' text is used"
    )


def _is_one_template(workload: Workload) -> bool:
    statefulset = workload.statefulset
    revisions = {pod.revision for pod in workload.pods}
    return statefulset is not None and statefulset.template_is_written and revisions == {statefulset.update_revision}


def _difference(written: Topology, reported: Topology | TopologyUnknown) -> str:
    if isinstance(reported, TopologyUnknown):
        return reported.reason
    ours = {each.number: each for each in written.subtopologies}
    theirs = {each.number: each for each in reported.subtopologies}
    odd = sorted(number for number in ours.keys() | theirs.keys() if ours.get(number) != theirs.get(number))
    return f"sub-topology {odd[0]} differs" if odd else f"sinks differ: {_first(written.sinks ^ reported.sinks)}"


def _first(names: Iterable[str]) -> str:
    return min(names)
