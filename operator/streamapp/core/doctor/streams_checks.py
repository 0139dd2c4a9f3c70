"""Checks of a group of the streams protocol, where brokers assign the tasks; they do not apply to any other group.

Called by `examine`. What only the classic protocol has, the other checks leave out by `streams_of`.
"""

from collections import defaultdict
from datetime import timedelta

from streamapp.core.assignors.broker_moves import why_unknown
from streamapp.core.doctor.diagnoses import Diagnosis, Finding, FindingKind, FindingSource
from streamapp.core.doctor.subject import Found, Subject
from streamapp.core.evidence import agent_views
from streamapp.core.evidence.refusal import first_few
from streamapp.core.facts.group import GroupDescription, StandbySetting, StreamsGroup
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import LearnerSource


def streams_of(subject: Subject) -> StreamsGroup | None:
    """What only a group of the streams protocol shows, by the newest reading; None for any other group."""
    latest = subject.snapshot.latest
    return latest.group.streams if latest is not None and isinstance(latest.group, GroupDescription) else None


def brokers_assignor_is_known(subject: Subject) -> Found:
    """The operator can predict where brokers put the tasks of a pod that leaves."""
    streams = streams_of(subject)
    if streams is None:
        return None
    doubt = why_unknown(streams)
    return (_finding(Diagnosis.BrokerAssignorUnknown, doubt),) if doubt else ()


def positions_are_reported(subject: Subject) -> Found:
    """There are agents to tell which tasks run and how far copies are: brokers do not."""
    if streams_of(subject) is None:
        return None
    return () if subject.policy.agent else (_finding(Diagnosis.PositionsNotReported, "`agent.enabled` is false"),)


def standbys_are_the_groups(subject: Subject) -> Found:
    """Nobody relies on `num.standby.replicas`, which has no effect here."""
    streams = streams_of(subject)
    if streams is None or not subject.policy.agent:
        return None
    asked: dict[int, list[Ordinal]] = defaultdict(list)
    for ordinal, report in sorted(agent_views.fresh(subject.snapshot, subject.policy.timing).items()):
        if report.standby_replicas:
            asked[report.standby_replicas].append(ordinal)
    if not asked:
        return ()
    setting = streams.standbys
    if not isinstance(setting, StandbySetting):
        return (_finding(Diagnosis.StandbysWithoutEffect, setting.detail, FindingKind.UNCHECKED),)
    return tuple(
        _finding(
            Diagnosis.StandbysWithoutEffect,
            f"pod {first_few(ordinals)}: the application asks for {count}, the group has {setting.replicas}",
            ordinals=tuple(ordinals),
        )
        for count, ordinals in sorted(asked.items())
        if count > setting.replicas
    )


def assignments_follow_at_once(subject: Subject) -> Found:
    """Brokers leave no time between two assignments of the group."""
    streams = streams_of(subject)
    if streams is None:
        return None
    interval = streams.assignment_interval or timedelta()
    return (_finding(Diagnosis.AssignmentsDelayed, f"{interval.total_seconds():g} s"),) if interval else ()


def learner_limit_has_no_effect(subject: Subject) -> Finding:
    """What `learners.maxAtOnce` is in such a group: it bounds learners of single tasks, and there are none."""
    is_raised = subject.policy.source is LearnerSource.ON_DEMAND
    raised = "the standbys of the whole group are raised, so every task gets a copy at once"
    detail = raised if is_raised else "learners do not come on demand"
    return Finding(diagnosis=Diagnosis.LearnerLimitWithoutEffect, detail=detail, source=FindingSource.SPEC)


def _finding(
    diagnosis: Diagnosis, detail: str, kind: FindingKind = FindingKind.FOUND, ordinals: tuple[Ordinal, ...] = ()
) -> Finding:
    return Finding(diagnosis=diagnosis, kind=kind, detail=detail, source=FindingSource.BROKERS, ordinals=ordinals)
