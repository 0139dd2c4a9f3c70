"""Checks on the resource, its pod template, its containers' ends and the operator's own last pass.

Called by `examine`; those of the template by the command line too, where no operator answers.
"""

from collections.abc import Iterable

from streamapp.core.doctor.diagnoses import Diagnosis, Finding, FindingKind, FindingSource
from streamapp.core.doctor.subject import DEFAULT_GRACE_SECONDS, Found, PassFailure, Subject, TemplateFacts
from streamapp.core.evidence.failing_pods import describe, faults, found_no_space
from streamapp.core.facts.containers import ContainerEnd

KILLED = 137
"""How a container ends that was sent SIGKILL: 128 and the signal's number."""
OUT_OF_MEMORY = "OOMKilled"


def last_pass_succeeded(subject: Subject) -> Found:
    """The operator's last pass came to its end."""
    failure = subject.failure
    if failure is None or failure.is_refusal:
        return ()
    return (Finding(diagnosis=Diagnosis.PassFailed, detail=_told(failure), source=FindingSource.OPERATOR),)


def api_server_refuses_nothing(subject: Subject) -> Found:
    """The API server allowed all that the last pass asked for."""
    failure = subject.failure
    if failure is None or not failure.is_refusal:
        return ()
    return (Finding(diagnosis=Diagnosis.OperatorRightMissing, detail=_told(failure), source=FindingSource.OPERATOR),)


def spec_is_valid(subject: Subject) -> Found:
    """The spec can be followed."""
    fault = subject.snapshot.app.fault
    return () if fault is None else (Finding(diagnosis=Diagnosis.InvalidSpec, detail=fault, source=FindingSource.SPEC),)


def application_id_is_free(subject: Subject) -> Found:
    """No older StreamApp has the same application."""
    conflicting_app = subject.snapshot.app.served_instead(
        has_statefulset=subject.snapshot.workload.statefulset is not None
    )
    if conflicting_app is None:
        return ()
    return (Finding(diagnosis=Diagnosis.ApplicationIdTaken, detail=conflicting_app.name, source=FindingSource.SPEC),)


def statefulset_is_ours(subject: Subject) -> Found:
    """The StatefulSet of its name is the operator's."""
    statefulset = subject.snapshot.workload.statefulset
    if statefulset is None or statefulset.is_ours:
        return ()
    detail = f"StatefulSet {statefulset.uid} is not controlled by this StreamApp"
    return (Finding(diagnosis=Diagnosis.ForeignStatefulSet, detail=detail, source=FindingSource.KUBERNETES),)


def pods_run(subject: Subject) -> Found:
    """Every pod runs its application, or starts without a fault so far; full volumes are told by themselves."""
    return _failing(subject, Diagnosis.PodFails)


def volumes_have_room(subject: Subject) -> Found:
    """No application ended because it found no space left."""
    return _failing(subject, Diagnosis.VolumeFull)


def _failing(subject: Subject, diagnosis: Diagnosis) -> Found:
    workload, is_full = subject.snapshot.workload, diagnosis is Diagnosis.VolumeFull
    return tuple(
        Finding(
            diagnosis=diagnosis,
            detail=describe(ordinal, fault, workload.volume(ordinal)),
            source=FindingSource.KUBERNETES,
            ordinals=(ordinal,),
        )
        for ordinal, fault in sorted(faults(workload).items())
        if found_no_space(fault) is is_full
    )


def containers_end_by_themselves(subject: Subject) -> Found:
    """No container was killed; those that ended while the operator watched are known."""
    snapshot = subject.snapshot
    killed = [end for end in snapshot.container_ends if end.exit_code == KILLED and end.reason != OUT_OF_MEMORY]
    if not killed:
        return ()
    last = max(killed, key=lambda end: end.finished_at)
    ordinals = tuple(
        sorted({pod.ordinal for pod in snapshot.workload.pods for end in killed if end.pod_uid == pod.uid})
    )
    grace = _grace(subject.template)
    detail = (
        f"{len(killed)} in the last hour, the last at {last.finished_at:%H:%M:%S} UTC; the grace period is {grace} s"
    )
    return (
        Finding(
            diagnosis=Diagnosis.KilledBeforeClosed, detail=detail, source=FindingSource.KUBERNETES, ordinals=ordinals
        ),
    )


def grace_period_is_long_enough(subject: Subject) -> Found:
    """The grace period is at least Kubernetes' own; whether close fits into it only an end can show."""
    return None if subject.template is None else grace_period(subject.template, subject.snapshot.container_ends)


def grace_period(template: TemplateFacts, ends: Iterable[ContainerEnd]) -> tuple[Finding, ...]:
    """The same, from the template and the ends of containers that were seen."""
    seconds = _grace(template)
    if seconds < DEFAULT_GRACE_SECONDS:
        detail = f"terminationGracePeriodSeconds is {seconds}; Kubernetes' own is {DEFAULT_GRACE_SECONDS}"
        return (Finding(diagnosis=Diagnosis.GracePeriodShort, detail=detail, source=FindingSource.SPEC),)
    if any(end.exit_code not in (None, KILLED) for end in ends):
        return ()
    detail = f"it is {seconds} s; how long `KafkaStreams#close()` takes shows only when a container ends"
    return (
        Finding(
            diagnosis=Diagnosis.GracePeriodShort, kind=FindingKind.UNSEEN, detail=detail, source=FindingSource.SPEC
        ),
    )


def readiness_is_probed(subject: Subject) -> Found:
    """Something tells a pod that restores from one that works."""
    return None if subject.template is None else missing_probe(subject.template, has_agent=subject.policy.agent)


def missing_probe(template: TemplateFacts, *, has_agent: bool) -> Found:
    """The same, from the template."""
    if has_agent:
        return None
    if template.has_readiness_probe:
        return ()
    detail = "no agent, and the application's container has no readinessProbe"
    return (Finding(diagnosis=Diagnosis.NoReadinessProbe, detail=detail, source=FindingSource.SPEC),)


def readiness_is_the_agents(subject: Subject) -> Found:
    """Where there is an agent, its probe is the one that counts."""
    return None if subject.template is None else own_probe(subject.template, has_agent=subject.policy.agent)


def own_probe(template: TemplateFacts, *, has_agent: bool) -> Found:
    """The same, from the template."""
    if not has_agent:
        return None
    if not template.has_readiness_probe:
        return ()
    detail = "the application's container has a readinessProbe, so that the agent's is not used"
    return (Finding(diagnosis=Diagnosis.OwnReadinessProbe, detail=detail, source=FindingSource.SPEC),)


def _grace(template: TemplateFacts | None) -> int:
    seconds = None if template is None else template.grace_seconds
    return DEFAULT_GRACE_SECONDS if seconds is None else seconds


def _told(failure: PassFailure) -> str:
    return f"at {failure.at:%H:%M:%S} UTC: {failure.why}"
