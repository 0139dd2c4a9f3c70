"""Checks on what the brokers say: reach and rights, the group, its tasks, their copies, who is who.

Called by `examine`. Each looks at the newest reading; where there is none that can be read, it says that it could not
be checked.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace

from streamapp.core.doctor.diagnoses import Diagnosis, Finding, FindingKind, FindingSource
from streamapp.core.doctor.subject import Found, Subject
from streamapp.core.evidence import learner_source
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.learner_source import LearnersUnknown
from streamapp.core.evidence.refusal import first_few
from streamapp.core.facts.group import GroupUnreadable
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable, Unknown
from streamapp.core.facts.policy import LearnerSource
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.topic_configs import ConfigUnread
from streamapp.core.gates.candidates import RemovalCandidate, RemovalKind
from streamapp.core.gates.case import GateInput
from streamapp.core.gates.chains import GATES
from streamapp.core.gates.evaluate import first_refusal
from streamapp.core.gates.safety_gates import identity_holds, no_process_id_is_duplicated
from streamapp.core.reasons import Reason
from streamapp.core.status import state_age

RIGHT = re.compile(r"grant ([A-Z_]+) on (topic|group) ([A-Za-z0-9._-]+)|grant ([A-Z_]+ on [^();]+)")
"""How the errors of the Kafka side name a right that is missing."""


def brokers_answer(subject: Subject) -> Found:
    """The group was described when it was last asked for."""
    latest = subject.snapshot.latest
    if latest is None:
        return _unchecked(Diagnosis.BrokersUnreachable, "the group was not read yet")
    # The brokers answered if the group was read, even if the group cannot be decoded.
    if isinstance(latest.group, GroupUnreadable) and latest.group.reason is Reason.BrokersUnreachable:
        return (_broker_finding(Diagnosis.BrokersUnreachable, latest.group.detail),)
    return ()


def by_gate(reason: Reason) -> Callable[[Subject], Found]:
    """The check that asks the gate of a reason about the newest reading, as if no pod left.

    If the gate refuses with another reason, the diagnosis could not be checked.
    """
    gate, diagnosis = GATES[reason.row.gate], Diagnosis.of(reason)

    def check(subject: Subject) -> Found:
        snapshot = subject.snapshot
        if snapshot.latest is None:
            return _unchecked(diagnosis, "the group was not read yet")
        evidence, no_pod = Evidence(snapshot, subject.policy), RemovalCandidate(RemovalKind.RESTART, ())
        view = evidence.agent_view
        refusal = gate(GateInput(evidence=evidence, candidate=no_pod, reading=snapshot.latest, view=view))
        if refusal is None:
            return ()
        if refusal.reason is reason:
            return (_broker_finding(diagnosis, refusal.detail),)
        return _unchecked(diagnosis, refusal.detail)

    return check


def no_right_is_missing(subject: Subject) -> Found:
    """No request was refused for want of a right, as far as requests were made."""
    by_operation: dict[tuple[str, str], set[str]] = defaultdict(set)
    others: set[str] = set()
    for text in _told(subject):
        for operation, kind, name, other in RIGHT.findall(text):
            if name:
                by_operation[operation, kind].add(name)
            else:
                others.add(other.strip())
    found = [_right(operation, kind, sorted(names)) for (operation, kind), names in sorted(by_operation.items())]
    rest = (replace(_KAFKA_RIGHT, detail=other) for other in sorted(others))
    if not found and not others and subject.snapshot.latest is None:
        return _unchecked(Diagnosis.KafkaRightMissing, "the brokers were not asked yet")
    return (*found, *rest)


def tasks_are_known(subject: Subject) -> Found:
    """The topology is known."""
    snapshot = subject.snapshot
    if isinstance(snapshot.task_set, TaskSet):
        return ()
    unreadable = _unreadable(snapshot)
    if unreadable is not None:
        return _unchecked(Diagnosis.TopologyUnknown, unreadable)
    return (_broker_finding(Diagnosis.TopologyUnknown, snapshot.task_set.reason),)


def ends_are_read(subject: Subject) -> Found:
    """The ends of the changelogs could be read when they were last asked for."""
    if isinstance(subject.snapshot.task_set, TopologyUnknown):
        return _unchecked(Diagnosis.EndOffsetsUnread, "it is not known which changelogs there are")
    latest = next(_ends(subject.snapshot), None)
    if latest is None:
        detail = "no join of the group was watched since the operator started, and only then ends are read"
        return _unchecked(Diagnosis.EndOffsetsUnread, detail)
    if isinstance(latest, EndOffsets):
        return ()
    return (_broker_finding(Diagnosis.EndOffsetsUnread, latest.detail),)


def tasks_have_copies(subject: Subject) -> Found:
    """Stateful tasks have standbys, or learners come on demand."""
    snapshot = subject.snapshot
    if isinstance(snapshot.task_set, TaskSet) and not snapshot.task_set.stateful:
        return None
    evidence = Evidence(snapshot, subject.policy)
    seen = learner_source.source_in_force(evidence)
    instead = seen.not_on_demand
    why_not = "" if instead is None else f"; not on demand: {f'{instead.reason.name} {instead.detail}'.strip()}"
    match seen.told:
        case LearnersUnknown(why):
            return _unchecked(Diagnosis.NoCopies, f"{why}{why_not}")
        case LearnerSource.NONE:
            if subject.policy.source is LearnerSource.ON_DEMAND and evidence.agents_unavailable is not None:
                # A finding of its own says which agent is silent.
                return _unchecked(Diagnosis.NoCopies, f"no standby of any task{why_not}")
            stateful = len(snapshot.task_set.stateful) if isinstance(snapshot.task_set, TaskSet) else 0
            detail = f"{stateful} stateful tasks, no standby of any{why_not}"
            return (_broker_finding(Diagnosis.NoCopies, detail),)
    return ()


def identity_is_stable(subject: Subject) -> Found:
    """Every pod runs with the process ID that its volume has on record, and no two with one."""
    snapshot = subject.snapshot
    if not snapshot.app.keeps_state:
        return None
    unreadable = _unreadable(snapshot)
    if unreadable is not None or snapshot.latest is None:
        return _unchecked(Diagnosis.IdentityUnstable, unreadable or "")
    nobody = RemovalCandidate(RemovalKind.RESTART, ())
    case = GateInput(evidence=Evidence(snapshot, subject.policy), candidate=nobody, reading=snapshot.latest)
    refusal = first_refusal((no_process_id_is_duplicated, identity_holds), case)
    if refusal is None:
        return ()
    if refusal.reason is Reason.ProcessIdUnrecorded:
        return _unchecked(Diagnosis.IdentityUnstable, f"not recorded yet: {refusal.detail}")
    return (_broker_finding(Diagnosis.IdentityUnstable, f"{refusal.reason.name}: {refusal.detail}"),)


def state_is_young_enough(subject: Subject) -> Found:
    """State that lay unused for as long as it may is still brought up to date from the changelogs."""
    snapshot = subject.snapshot
    if snapshot.app.max_idle_time is None:
        return None
    warned, unchecked = state_age.warning(snapshot), state_age.unchecked(snapshot)
    found = () if warned is None else (_broker_finding(Diagnosis.MaxIdleTimeTooLong, warned.detail),)
    if unchecked:
        return (*found, *_unchecked(Diagnosis.MaxIdleTimeTooLong, unchecked))
    if not snapshot.topic_configs and (not isinstance(snapshot.task_set, TaskSet) or snapshot.task_set.topics):
        return _unchecked(Diagnosis.MaxIdleTimeTooLong, "the settings of the changelogs were not read yet")
    return found


_KAFKA_RIGHT = Finding(diagnosis=Diagnosis.KafkaRightMissing, source=FindingSource.BROKERS)


def _right(operation: str, kind: str, names: list[str]) -> Finding:
    """Name it, and how `kafka-acls.sh` grants it: operations are written there in camel case."""
    spelt = "".join(word.capitalize() for word in operation.split("_"))
    detail = f"{operation} on {kind} {first_few(names)}: kafka-acls.sh --add --operation {spelt} --{kind} {names[0]}"
    return replace(_KAFKA_RIGHT, detail=detail, topic=names[0] if kind == "topic" else "")


def _told(subject: Subject) -> Iterator[str]:
    """Every sentence in which a refusal of the brokers may stand."""
    snapshot = subject.snapshot
    latest = snapshot.latest
    if latest is not None and isinstance(latest.group, GroupUnreadable):
        yield latest.group.detail
    if isinstance(snapshot.task_set, TopologyUnknown):
        yield snapshot.task_set.reason
    for ends in _ends(snapshot):
        if isinstance(ends, EndsUnreadable):
            yield ends.detail
        else:
            yield from (end.data_end.why for end in ends.partitions.values() if isinstance(end.data_end, Unknown))
        break
    yield from (config.why for config in snapshot.topic_configs.values() if isinstance(config, ConfigUnread))
    if subject.failure is not None:
        yield subject.failure.why


def _ends(snapshot: Snapshot) -> Iterator[EndOffsets | EndsUnreadable]:
    """Every look at the ends that is remembered, the newest first: after words of agents, then after joins."""
    if snapshot.agents is not None:
        yield from (one.ends for one in snapshot.agents.ends)
    yield from (one.rebalance.ends for one in snapshot.readings if one.rebalance is not None)


def _unreadable(snapshot: Snapshot) -> str | None:
    """Why the group is not known; None where it is."""
    latest = snapshot.latest
    if latest is None:
        return "the group was not read yet"
    return latest.group.detail if isinstance(latest.group, GroupUnreadable) else None


def _broker_finding(diagnosis: Diagnosis, detail: str) -> Finding:
    return Finding(diagnosis=diagnosis, detail=detail, source=FindingSource.BROKERS)


def _unchecked(diagnosis: Diagnosis, why: str) -> tuple[Finding, ...]:
    return (Finding(diagnosis=diagnosis, kind=FindingKind.UNCHECKED, detail=why, source=FindingSource.BROKERS),)
