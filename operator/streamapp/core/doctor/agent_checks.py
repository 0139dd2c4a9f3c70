"""Checks on what only the agents in the JVMs tell: settings, limits, directories; and on the agents themselves.

Called by `examine`. Without agents none of it can be seen from outside, and each check says so; with them, a pod
whose agent is silent, or does not tell one thing, is named as not checked.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from streamapp.core.doctor.diagnoses import Diagnosis, Finding, FindingKind, FindingSource
from streamapp.core.doctor.streams_checks import learner_limit_has_no_effect, streams_of
from streamapp.core.doctor.subject import Found, Subject
from streamapp.core.evidence import agent_views
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.learner_source import UNBOUNDED, LearnersUnknown, source_in_force
from streamapp.core.evidence.refusal import first_few
from streamapp.core.facts.agent_reports import AgentReport, AgentSilent, AsideKind
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import LearnerSource
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.gates.candidates import stateful_tasks

KAFKAS_HEARTBEAT = timedelta(seconds=3)
"""`heartbeat.interval.ms` where nobody sets it."""
KAFKAS_SESSION = timedelta(seconds=45)
"""`session.timeout.ms` where nobody sets it."""
_STREAMS_SESSION = "`streams.session.timeout.ms` of the group"
NO_AGENT = "only an agent in the JVM tells it, and `agent.enabled` is false"


@dataclass(frozen=True, slots=True)
class _NotTold:
    """The agent answers and leaves this out."""


@dataclass(frozen=True, slots=True)
class _Wrong:
    """What is wrong there, the same words for all pods in which it is the same."""

    detail: str


_Verdict = _Wrong | _NotTold | None
_Judge = Callable[[AgentReport], _Verdict]


def there_is_a_key(subject: Subject) -> Found:
    """The operator can ask agents at all."""
    if not subject.policy.agent:
        return None
    if not subject.no_agent_key:
        return ()
    detail = subject.no_agent_key
    return (Finding(diagnosis=Diagnosis.AgentKeyMissing, detail=detail, source=FindingSource.OPERATOR),)


def agents_answer(subject: Subject) -> Found:
    """Every pod that runs has an agent that answers."""
    if not subject.policy.agent:
        return None
    running = _running(subject)
    if not running or subject.no_agent_key:
        why = "the operator has no key for agents" if subject.no_agent_key else "no pod runs"
        return (_finding(Diagnosis.AgentSilent, why, (), FindingKind.UNCHECKED),)
    return _silent(subject, Diagnosis.AgentSilent)


def agents_are_trusted(subject: Subject) -> Found:
    """Every agent with a certificate has one that the operator trusts."""
    pods = subject.snapshot.workload.pods
    secured = {pod.ordinal for pod in pods if pod.is_running and pod.agent_tls_secret is not None}
    if not subject.policy.agent or not secured:
        return None
    found = _silent(subject, Diagnosis.AgentUntrusted)
    untrusted = {ordinal for one in found for ordinal in one.ordinals}
    quiet = tuple(sorted(secured - untrusted - _reports(subject).keys()))
    if quiet:
        found += (_finding(Diagnosis.AgentUntrusted, "the agent is silent", quiet, FindingKind.UNCHECKED),)
    return found


def _silent(subject: Subject, diagnosis: Diagnosis) -> tuple[Finding, ...]:
    """The pods without a report that counts, those with one cause together; `diagnosis` says which causes."""
    reports, seen = _reports(subject), subject.snapshot.agents
    by_why: dict[tuple[FindingKind, str], list[Ordinal]] = defaultdict(list)
    for ordinal in _running(subject):
        if ordinal in reports:
            continue
        words = () if seen is None else seen.words.get(ordinal, ())
        cause, kind, why = Diagnosis.AgentSilent, FindingKind.FOUND, "its last word is too old, or another pod's"
        if not words:
            # A pass that grows asks nobody.
            kind, why = FindingKind.UNCHECKED, "it was not asked yet"
        elif isinstance(words[0], AgentSilent):
            why = words[0].why
            cause = Diagnosis.AgentUntrusted if words[0].is_untrusted else cause
        if cause is diagnosis:
            by_why[kind, why].append(ordinal)
    return tuple(_finding(diagnosis, why, tuple(who), kind) for (kind, why), who in by_why.items())


def assignor_is_at_work(subject: Subject) -> Found:
    """The assignor that learns on demand is the one that assigns, in every pod; with the streams protocol none does."""
    is_asked = subject.policy.agent and streams_of(subject) is None
    return _asked(subject, Diagnosis.AssignorAside, _aside) if is_asked else None


def lag_limit_is_a_limit(subject: Subject) -> Found:
    """`acceptable.recovery.lag` bounds something."""
    return _asked(subject, Diagnosis.LagLimitUnbounded, _unbounded)


def lag_limits_agree(subject: Subject) -> Found:
    """All JVMs have one `acceptable.recovery.lag`, and it is what the StreamApp says."""
    declared = subject.policy.acceptable_recovery_lag

    def judge(report: AgentReport) -> _Verdict:
        limit = report.recovery_lag
        if limit is None:
            return _NotTold()
        # An endless one has a finding of its own.
        return None if limit == declared or limit >= UNBOUNDED else _Wrong(f"{limit}, the StreamApp says {declared}")

    return _asked(subject, Diagnosis.LagLimitsDisagree, judge)


def learner_limit_bounds(subject: Subject) -> Found:
    """The most learners at once are more than one pod takes, and come on demand."""
    limit = subject.policy.max_learners
    if limit is None:
        return None
    if streams_of(subject) is not None:
        return (learner_limit_has_no_effect(subject),)
    evidence = Evidence(subject.snapshot, subject.policy)
    source = source_in_force(evidence).source
    if isinstance(source, LearnersUnknown):
        return (_finding(Diagnosis.LearnerLimitWithoutEffect, source.why, (), FindingKind.UNCHECKED),)
    if source is not LearnerSource.ON_DEMAND:
        detail = f"learners do not come on demand; the source is {source.value}"
        return (Finding(diagnosis=Diagnosis.LearnerLimitWithoutEffect, detail=detail, source=FindingSource.SPEC),)
    tasks = {pod.ordinal: len(stateful_tasks(evidence, pod.ordinal)) for pod in subject.snapshot.workload.pods}
    larger = tuple(sorted(ordinal for ordinal, count in tasks.items() if count > limit))
    if not larger:
        return ()
    detail = f"{max(tasks.values())} stateful tasks, the limit is {limit}"
    return (_finding(Diagnosis.LearnerLimitWithoutEffect, detail, larger),)


def state_is_on_the_volume(subject: Subject) -> Found:
    """`state.dir` is the folder that the StreamApp names."""
    template = subject.template
    if template is None or not subject.snapshot.app.keeps_state:
        return None

    def judge(report: AgentReport) -> _Verdict:
        folder = report.settings.state_directory
        if folder is None:
            return _NotTold()
        told = folder.rstrip("/") or "/"
        if told == template.state_directory:
            return None
        if f"{told}/".startswith(f"{template.mount_path.rstrip('/')}/"):
            return _Wrong(f"it is {told}, on the volume, but the StreamApp says {template.state_directory}")
        return _Wrong(f"it is {told}, and the volume is at {template.mount_path}")

    return _asked(subject, Diagnosis.StateDirElsewhere, judge)


def state_has_a_volume(subject: Subject) -> Found:
    """Where state is written to disk, there is a volume for it."""
    task_set = subject.snapshot.task_set
    if subject.snapshot.app.keeps_state or (isinstance(task_set, TaskSet) and not task_set.stateful):
        return None
    return _asked(subject, Diagnosis.StateWithoutVolume, _state_on_disk)


def task_directories_were_kept(subject: Subject) -> Found:
    """Nobody emptied the state directory before the instance started."""
    return _asked(subject, Diagnosis.TaskDirectoriesEmptied, _emptied)


def close_leaves(subject: Subject) -> Found:
    """`close()` gives the place in the group up."""
    return _asked(subject, Diagnosis.CloseWithoutLeave, _stays)


def heartbeats_are_quick(subject: Subject) -> Found:
    """Heartbeats come more often than Kafka's default, while tasks move at least."""
    return _asked(subject, Diagnosis.HeartbeatSlow, _slow if streams_of(subject) is None else _uncapped)


def static_sessions_are_short(subject: Subject) -> Found:
    """Where members are static, their session is no longer than Kafka's default."""
    latest = subject.snapshot.latest
    group = None if latest is None else latest.group
    if not isinstance(group, GroupDescription):
        why = "the group could not be read, so that it is not known whether members are static"
        return (_finding(Diagnosis.SessionTimeoutLong, why, (), FindingKind.UNCHECKED),)
    static = [member.instance_id for member in group.members if member.instance_id is not None]
    if not static:
        return ()
    if group.streams is not None:
        why = f"members are static (`group.instance.id` {static[0]}); the operator does not read {_STREAMS_SESSION}"
        return (_finding(Diagnosis.SessionTimeoutLong, why, (), FindingKind.UNSEEN),)
    if not subject.policy.agent:
        why = f"members are static (`group.instance.id` {static[0]}); their `session.timeout.ms`: {NO_AGENT}"
        return (_finding(Diagnosis.SessionTimeoutLong, why, (), FindingKind.UNSEEN),)
    return _asked(subject, Diagnosis.SessionTimeoutLong, _long_session)


def _aside(report: AgentReport) -> _Verdict:
    if report.is_ours:
        return None
    aside = report.aside
    if aside is not None and aside.kind is AsideKind.STREAMS_PROTOCOL:
        return None  # no assignor of an application assigns there
    return _Wrong("it does not say why" if aside is None else f"{aside.kind.value}: {aside.why}")


def _unbounded(report: AgentReport) -> _Verdict:
    if report.recovery_lag is None:
        return _NotTold()
    return _Wrong(f"it is {report.recovery_lag}") if report.recovery_lag >= UNBOUNDED else None


def _state_on_disk(report: AgentReport) -> _Verdict:
    if report.state_bytes is None:
        return _NotTold()
    folder = report.settings.state_directory or "the state directory"
    return _Wrong(f"state in {folder}") if report.state_bytes > 0 else None


def _emptied(report: AgentReport) -> _Verdict:
    # The agent leaves it out where there were none, as the contract has it.
    cleaned = report.settings.cleaned_tasks
    return _Wrong(f"{cleaned} task directories") if cleaned else None


def _stays(report: AgentReport) -> _Verdict:
    leaves = report.settings.leaves_on_close
    if leaves is None:
        return _NotTold()
    return None if leaves else _Wrong("the operator puts its members out when the container has ended")


def _slow(report: AgentReport) -> _Verdict:
    heartbeat = report.settings.heartbeat
    if heartbeat is None:
        return _NotTold()
    return _Wrong(f"every {heartbeat.total_seconds():g} s") if heartbeat >= KAFKAS_HEARTBEAT else None


def _uncapped(report: AgentReport) -> _Verdict:
    """Brokers of the streams protocol choose the interval, 5 s at least; only the agent shortens it."""
    if report.heartbeat_cap is not None:
        return None
    return _Wrong("as often as the brokers say, every 5 s by default: the agent cannot shorten it")


def _long_session(report: AgentReport) -> _Verdict:
    session = report.settings.session_timeout
    if session is None:
        return _NotTold()
    return _Wrong(f"session.timeout.ms is {session.total_seconds():g} s") if session > KAFKAS_SESSION else None


def _asked(subject: Subject, diagnosis: Diagnosis, judge: _Judge) -> tuple[Finding, ...]:
    """What the agents make of it, pods of which the same is said together."""
    if not subject.policy.agent:
        return (_finding(diagnosis, NO_AGENT, (), FindingKind.UNSEEN),)
    running, reports = _running(subject), _reports(subject)
    if not running:
        return (_finding(diagnosis, "no pod runs", (), FindingKind.UNCHECKED),)
    wrong: dict[str, list[Ordinal]] = defaultdict(list)
    not_told = []
    for ordinal, report in sorted(reports.items()):
        verdict = judge(report)
        if isinstance(verdict, _Wrong):
            wrong[verdict.detail].append(ordinal)
        elif isinstance(verdict, _NotTold):
            not_told.append(ordinal)
    found = [_finding(diagnosis, detail, tuple(ordinals)) for detail, ordinals in wrong.items()]
    silent = tuple(ordinal for ordinal in running if ordinal not in reports)
    if silent:
        found.append(_finding(diagnosis, "the agent is silent", silent, FindingKind.UNCHECKED))
    if not_told:
        found.append(_finding(diagnosis, "the agent does not tell", tuple(not_told), FindingKind.UNSEEN))
    return tuple(found)


def _running(subject: Subject) -> tuple[Ordinal, ...]:
    return tuple(pod.ordinal for pod in subject.snapshot.workload.pods if pod.is_running)


def _reports(subject: Subject) -> dict[Ordinal, AgentReport]:
    return dict(agent_views.fresh(subject.snapshot, subject.policy.timing))


def _finding(
    diagnosis: Diagnosis, detail: str, ordinals: tuple[Ordinal, ...], kind: FindingKind = FindingKind.FOUND
) -> Finding:
    where = f"pod {first_few(ordinals)}: " if ordinals else ""
    return Finding(
        diagnosis=diagnosis, kind=kind, detail=f"{where}{detail}", source=FindingSource.AGENTS, ordinals=ordinals
    )
