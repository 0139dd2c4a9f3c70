"""One story for each code: it is found where its cause is there, with the particulars, and gone when the cause is."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.doctor.diagnoses import Diagnosis, FindingKind, Severity
from streamapp.core.doctor.examine import CHECKS, examine
from streamapp.core.doctor.subject import PassFailure, Subject
from streamapp.core.facts.agent_reports import AgentSilent, AsideKind, AssignorInactive, HeartbeatCap
from streamapp.core.facts.group import GroupUnreadable, StandbySetting, StandbySettingUnread
from streamapp.core.facts.lag import EndsUnreadable, PartitionEnd, Unknown
from streamapp.core.facts.policy import LearnerSource
from streamapp.core.facts.snapshot import ConflictingStreamApp
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.facts.topic_configs import ConfigUnread
from streamapp.core.facts.workload import PodFault, Volume
from streamapp.core.reasons import Reason
from tests.builders import NOW, a_pod, a_reading, ago, an_end, an_unreadable, pods, volumes
from tests.core.doctor.subjects import (
    KEPT_SHORT,
    TOPIC,
    a_patient,
    changed,
    codes,
    found,
    members,
    not_checked,
    of_streams_protocol,
    told,
    with_agents,
)
from tests.support import example

CRASH = PodFault(reason="Error", container="app", exit_code=1, restarts=4, last_words="boom")

NO_SPACE = replace(CRASH, last_words="IO error: No space left on device")


def volumes_of(mebibytes: int) -> tuple[Volume, ...]:
    return tuple(replace(one, requested=mebibytes * 2**20) for one in volumes(3))


@dataclass(frozen=True)
class Story:
    """Somebody who has it, what is said of it, and the same one without its cause."""

    ill: Subject
    well: Subject
    detail: str


def with_static_members(subject: Subject) -> Subject:
    static = tuple(replace(one, instance_id=one.client_id) for one in members(standbys=False))
    return replace(subject, snapshot=replace(subject.snapshot, readings=example.two_readings(static)))


def unreadable(reason: Reason, detail: str = "timed out", **changes: Any) -> Subject:
    reading = replace(an_unreadable(), group=GroupUnreadable(reason, detail))
    return a_patient(readings=(reading,), **changes)


def with_ends(ends: Any) -> Subject:
    reading = a_reading(members())
    assert reading.rebalance is not None
    return a_patient(readings=(replace(reading, rebalance=replace(reading.rebalance, ends=ends)),))


def a_tail_unread() -> Any:
    ends = example.ends(ago(2))
    tail = Unknown("topic x: tail: the broker refuses it to this user (grant READ on topic x)")
    first = min(ends.partitions)
    return replace(ends, partitions={**ends.partitions, first: PartitionEnd(log_start=0, end=9, data_end=tail)})


ASIDE = AssignorInactive(AsideKind.OLDER_STREAMS, "Kafka Streams 3.7 has no TaskAssignor")
WELL, WELL_WITH_AGENTS = a_patient(), with_agents()
CAPPED = {"heartbeat_cap": HeartbeatCap(), "is_ours": False, "aside": AssignorInactive(AsideKind.STREAMS_PROTOCOL, "")}
WELL_WITH_STREAMS = of_streams_protocol(
    with_agents(words=CAPPED, policy={"source": LearnerSource.ON_DEMAND}), standbys=StandbySetting(1, is_set=True)
)
WELL_WITH_TLS = with_agents(workload={"pods": tuple(replace(pod, agent_tls_secret="cert") for pod in pods(3))})

STORIES: dict[Diagnosis, Story] = {
    Diagnosis.PassFailed: Story(
        a_patient(failure=PassFailure(ago(5), "PATCH /x: 500 (it is tried again)", is_refusal=False)),
        WELL,
        "at 11:59:55 UTC: PATCH /x: 500 (it is tried again)",
    ),
    Diagnosis.OperatorRightMissing: Story(
        a_patient(failure=PassFailure(ago(5), "LIST pods: forbidden", is_refusal=True)),
        WELL,
        "at 11:59:55 UTC: LIST pods: forbidden",
    ),
    Diagnosis.InvalidSpec: Story(a_patient(app={"fault": "spec.x must be y"}), WELL, "spec.x must be y"),
    Diagnosis.ApplicationIdTaken: Story(
        a_patient(
            app={
                "conflicting": (
                    ConflictingStreamApp(name="demo/older", uid="0", created_at=ago(10**6), has_statefulset=True),
                )
            }
        ),
        WELL,
        "demo/older",
    ),
    Diagnosis.ForeignStatefulSet: Story(
        a_patient(statefulset={"is_ours": False}), WELL, "StatefulSet sts is not controlled by this StreamApp"
    ),
    Diagnosis.BrokersUnreachable: Story(unreadable(Reason.BrokersUnreachable), WELL, "timed out"),
    Diagnosis.GroupProtocolUnsupported: Story(unreadable(Reason.GroupProtocolUnsupported), WELL, "timed out"),
    Diagnosis.GroupUndecodable: Story(unreadable(Reason.GroupUndecodable), WELL, "timed out"),
    Diagnosis.KafkaRightMissing: Story(
        unreadable(Reason.BrokersUnreachable, "group wordcount: describe: refused (grant DESCRIBE on group wordcount)"),
        WELL,
        "DESCRIBE on group wordcount: kafka-acls.sh --add --operation Describe --group wordcount",
    ),
    Diagnosis.TopologyUnknown: Story(
        a_patient(task_set=TopologyUnknown("more than one sub-topology has stores")),
        WELL,
        "more than one sub-topology has stores",
    ),
    Diagnosis.EndOffsetsUnread: Story(
        with_ends(EndsUnreadable("no leader")), with_ends(example.ends(ago(2))), "no leader"
    ),
    Diagnosis.NoCopies: Story(a_patient(members(standbys=False)), WELL, "6 stateful tasks, no standby of any"),
    Diagnosis.IdentityUnstable: Story(
        a_patient(workload={"volumes": (replace(volumes()[0], process_id=example.process_id(7)), *volumes()[1:])}),
        WELL,
        f"ProcessIdMismatch: ordinal 0 runs as {example.process_id(0)}, recorded is {example.process_id(7)}",
    ),
    Diagnosis.MaxIdleTimeTooLong: Story(
        a_patient(topic_configs={TOPIC: KEPT_SHORT}),
        WELL,
        f"topic {TOPIC}: delete.retention.ms is 3600000 (1:00:00), `state.maxIdleTime` is 20:00:00",
    ),
    Diagnosis.AgentKeyMissing: Story(
        with_agents(no_agent_key="no key: see docs"), WELL_WITH_AGENTS, "no key: see docs"
    ),
    Diagnosis.AgentSilent: Story(
        changed(WELL_WITH_AGENTS, lambda word: AgentSilent(word.ordinal, "no answer"), 1),
        WELL_WITH_AGENTS,
        "pod 1: no answer",
    ),
    Diagnosis.AgentUntrusted: Story(
        changed(WELL_WITH_TLS, lambda word: AgentSilent(word.ordinal, "it has expired", is_untrusted=True), 1),
        WELL_WITH_TLS,
        "pod 1: it has expired",
    ),
    Diagnosis.AssignorAside: Story(
        changed(WELL_WITH_AGENTS, lambda word: replace(word, is_ours=False, aside=ASIDE), 0, 2),
        WELL_WITH_AGENTS,
        "pod 0, 2: OlderStreams: Kafka Streams 3.7 has no TaskAssignor",
    ),
    Diagnosis.LagLimitUnbounded: Story(
        with_agents(words={"recovery_lag": 2**63 - 1}), WELL_WITH_AGENTS, f"pod 0, 1, 2: it is {2**63 - 1}"
    ),
    Diagnosis.LagLimitsDisagree: Story(
        changed(WELL_WITH_AGENTS, lambda word: replace(word, recovery_lag=500), 2),
        WELL_WITH_AGENTS,
        "pod 2: 500, the StreamApp says 10000",
    ),
    Diagnosis.LearnerLimitWithoutEffect: Story(
        with_agents(policy={"max_learners": 1}),
        with_agents(policy={"max_learners": 2}),
        "pod 0, 1, 2: 2 stateful tasks, the limit is 1",
    ),
    Diagnosis.StateDirElsewhere: Story(
        with_agents(settings={"state_directory": "/tmp/kafka-streams"}),
        with_agents(settings={"state_directory": "/state/"}),
        "pod 0, 1, 2: it is /tmp/kafka-streams, and the volume is at /state",
    ),
    Diagnosis.StateWithoutVolume: Story(
        with_agents(app={"keeps_state": False, "max_idle_time": None}, words={"state_bytes": 4096}),
        with_agents(app={"keeps_state": False, "max_idle_time": None}, words={"state_bytes": 0}),
        "pod 0, 1, 2: state in /state",
    ),
    Diagnosis.TaskDirectoriesEmptied: Story(
        changed(WELL_WITH_AGENTS, lambda word: replace(word, settings=replace(word.settings, cleaned_tasks=4)), 1),
        with_agents(settings={"cleaned_tasks": 0}),
        "pod 1: 4 task directories",
    ),
    Diagnosis.CloseWithoutLeave: Story(
        with_agents(settings={"leaves_on_close": False}),
        WELL_WITH_AGENTS,
        "pod 0, 1, 2: the operator puts its members out when the container has ended",
    ),
    Diagnosis.HeartbeatSlow: Story(
        with_agents(settings={"heartbeat": timedelta(seconds=3)}),
        with_agents(settings={"heartbeat": timedelta(milliseconds=2999)}),
        "pod 0, 1, 2: every 3 s",
    ),
    Diagnosis.BrokerAssignorUnknown: Story(
        of_streams_protocol(WELL_WITH_AGENTS, broker_release=None),
        WELL_WITH_STREAMS,
        "the coordinator is of another release than 4.2, 4.3 and 4.4",
    ),
    Diagnosis.PositionsNotReported: Story(of_streams_protocol(WELL), WELL_WITH_STREAMS, "`agent.enabled` is false"),
    Diagnosis.StandbysWithoutEffect: Story(
        changed(WELL_WITH_STREAMS, lambda word: replace(word, standby_replicas=2), 1),
        changed(WELL_WITH_STREAMS, lambda word: replace(word, standby_replicas=1), 1),
        "pod 1: the application asks for 2, the group has 1",
    ),
    Diagnosis.AssignmentsDelayed: Story(
        of_streams_protocol(WELL_WITH_AGENTS, assignment_interval=timedelta(seconds=1)),
        of_streams_protocol(WELL_WITH_AGENTS, assignment_interval=timedelta()),
        "1 s",
    ),
    Diagnosis.SessionTimeoutLong: Story(
        with_static_members(with_agents(settings={"session_timeout": timedelta(minutes=5)})),
        with_static_members(WELL_WITH_AGENTS),
        "pod 0, 1, 2: session.timeout.ms is 300 s",
    ),
    Diagnosis.PodFails: Story(
        a_patient(workload={"pods": pods(3, p1=a_pod(1, ready=False, fault=CRASH))}),
        a_patient(workload={"pods": pods(3, p1=a_pod(1, ready=False))}),
        "container app of pod 1 ended with exit code 1 (Error, 4 restarts): boom",
    ),
    Diagnosis.VolumeFull: Story(
        a_patient(workload={"pods": pods(3, p1=a_pod(1, ready=False, fault=NO_SPACE)), "volumes": volumes_of(320)}),
        a_patient(workload={"pods": pods(3, p1=a_pod(1, ready=False, fault=CRASH)), "volumes": volumes_of(320)}),
        "container app of pod 1 ended with exit code 1 (Error, 4 restarts): IO error: No space left on device; "
        "its claim asks for 320 MiB",
    ),
    Diagnosis.KilledBeforeClosed: Story(
        a_patient(container_ends=(an_end(1, exit_code=137, reason="Error"),)),
        a_patient(container_ends=(an_end(1, exit_code=137, reason="OOMKilled"),)),
        "1 in the last hour, the last at 11:59:55 UTC; the grace period is 60 s",
    ),
    Diagnosis.GracePeriodShort: Story(
        a_patient(template={"grace_seconds": 10}),
        WELL,
        "terminationGracePeriodSeconds is 10; Kubernetes' own is 30",
    ),
    Diagnosis.NoReadinessProbe: Story(
        a_patient(template={"has_readiness_probe": False}),
        WELL,
        "no agent, and the application's container has no readinessProbe",
    ),
    Diagnosis.OwnReadinessProbe: Story(
        with_agents(template={"has_readiness_probe": True}),
        WELL_WITH_AGENTS,
        "the application's container has a readinessProbe, so that the agent's is not used",
    ),
}


def test_every_check_has_a_story() -> None:
    assert set(STORIES) == {diagnosis for diagnosis, _ in CHECKS}


@pytest.mark.parametrize("diagnosis", STORIES, ids=lambda one: one.name)
def test_it_is_found_where_its_cause_is_there_and_nowhere_else(diagnosis: Diagnosis) -> None:
    story = STORIES[diagnosis]
    assert found(story.ill, diagnosis) == [story.detail]
    assert found(story.well, diagnosis) == []
    assert diagnosis in examine(story.well).fine


@pytest.mark.parametrize("diagnosis", STORIES, ids=lambda one: one.name)
def test_a_diagnosis_that_is_found_is_never_said_to_be_in_order(diagnosis: Diagnosis) -> None:
    examination = examine(STORIES[diagnosis].ill)
    assert codes(examination).isdisjoint(examination.fine)
    assert codes(examination, FindingKind.UNCHECKED).isdisjoint(examination.fine)
    assert codes(examination, FindingKind.UNSEEN).isdisjoint(examination.fine)


def test_who_is_well_has_nothing_and_with_agents_there_is_nothing_that_could_not_be_checked() -> None:
    assert examine(WELL_WITH_AGENTS).findings == ()
    assert codes(examine(WELL)) == codes(examine(WELL), FindingKind.UNCHECKED) == set()


@pytest.mark.parametrize(
    ("subject", "kinds"),
    [
        (a_patient(policy={"max_learners": 5}), [FindingKind.FOUND]),
        (unreadable(Reason.BrokersUnreachable, policy={"max_learners": 5}), [FindingKind.UNCHECKED]),
        (WELL, []),
    ],
)
def test_a_limit_of_learners_needs_learners_on_demand(subject: Any, kinds: list[FindingKind]) -> None:
    assert [one.kind for one in told(subject, Diagnosis.LearnerLimitWithoutEffect)] == kinds


def test_without_an_agent_what_only_an_agent_tells_is_named_as_not_to_be_seen() -> None:
    examination = examine(WELL)
    assert {one.name for one in codes(examination, FindingKind.UNSEEN)} == {
        *("LagLimitUnbounded", "LagLimitsDisagree", "StateDirElsewhere", "TaskDirectoriesEmptied"),
        *("CloseWithoutLeave", "HeartbeatSlow"),
    }
    assert not_checked(with_static_members(WELL), Diagnosis.SessionTimeoutLong) == [
        (
            FindingKind.UNSEEN,
            "members are static (`group.instance.id` wordcount-0); their `session.timeout.ms`: only an agent in the "
            "JVM tells it, and `agent.enabled` is false",
        )
    ]


def test_a_silent_agent_leaves_its_pod_unchecked_and_only_its_pod() -> None:
    one_ill = changed(WELL_WITH_AGENTS, lambda word: replace(word, settings=replace(word.settings, heartbeat=None)), 0)
    subject = changed(one_ill, lambda word: AgentSilent(word.ordinal, "no answer"), 1)
    assert not_checked(subject, Diagnosis.HeartbeatSlow) == [
        (FindingKind.UNCHECKED, "pod 1: the agent is silent"),
        (FindingKind.UNSEEN, "pod 0: the agent does not tell"),
    ]
    assert Diagnosis.HeartbeatSlow not in examine(subject).fine


def test_an_agent_that_is_not_trusted_is_not_called_silent() -> None:
    subject = changed(WELL_WITH_TLS, lambda word: AgentSilent(word.ordinal, "expired", is_untrusted=True), 1)
    assert found(subject, Diagnosis.AgentSilent) == []
    assert not_checked(subject, Diagnosis.AgentUntrusted) == []


def test_whether_a_silent_agent_can_be_trusted_is_not_checked_and_not_in_order() -> None:
    subject = changed(WELL_WITH_TLS, lambda word: AgentSilent(word.ordinal, "no answer"), 1)
    assert found(subject, Diagnosis.AgentUntrusted) == []
    assert not_checked(subject, Diagnosis.AgentUntrusted) == [(FindingKind.UNCHECKED, "pod 1: the agent is silent")]
    assert Diagnosis.AgentUntrusted not in examine(subject).fine
    assert Diagnosis.AgentUntrusted not in examine(WELL_WITH_AGENTS).fine
    assert Diagnosis.AgentUntrusted in examine(WELL_WITH_TLS).fine


def test_an_agent_that_a_pass_did_not_ask_is_not_called_silent() -> None:
    subject = with_agents(agents=replace(example.agents(()), words={}))
    assert found(subject, Diagnosis.AgentSilent) == []
    assert not_checked(subject, Diagnosis.AgentSilent) == [(FindingKind.UNCHECKED, "pod 0, 1, 2: it was not asked yet")]


def test_of_agents_that_cannot_be_asked_for_want_of_a_key_only_the_key_is_found() -> None:
    subject = changed(
        replace(WELL_WITH_AGENTS, no_agent_key="no key"), lambda word: AgentSilent(word.ordinal, "no key"), 0, 1, 2
    )
    assert codes(examine(subject)) >= {Diagnosis.AgentKeyMissing}
    assert found(subject, Diagnosis.AgentSilent) == []


def test_a_state_directory_on_the_volume_but_not_the_one_that_is_named_is_told_apart() -> None:
    subject = with_agents(settings={"state_directory": "/state/other"})
    (detail,) = found(subject, Diagnosis.StateDirElsewhere)
    assert detail == "pod 0, 1, 2: it is /state/other, on the volume, but the StreamApp says /state"


def test_a_folder_that_only_begins_like_the_volume_is_not_on_it() -> None:
    subject = with_agents(settings={"state_directory": "/state-2"})
    (detail,) = found(subject, Diagnosis.StateDirElsewhere)
    assert detail == "pod 0, 1, 2: it is /state-2, and the volume is at /state"


def refused(right: str) -> str:
    return f"topic x: read: the broker refuses it to this user (grant {right})"


RIGHTS: dict[str, tuple[Subject, str]] = {
    "of the topology": (
        a_patient(task_set=TopologyUnknown(refused("DESCRIBE on topics with the prefix wordcount-"))),
        "DESCRIBE on topics with the prefix wordcount-",
    ),
    "of the ends": (
        with_ends(EndsUnreadable(refused("DESCRIBE on topic wordcount-x"))),
        "DESCRIBE on topic wordcount-x: kafka-acls.sh --add --operation Describe --topic wordcount-x",
    ),
    "of a tail": (with_ends(a_tail_unread()), "READ on topic x: kafka-acls.sh --add --operation Read --topic x"),
    "of settings": (
        a_patient(topic_configs={name: ConfigUnread(refused(f"DESCRIBE_CONFIGS on topic {name}")) for name in "ba"}),
        "DESCRIBE_CONFIGS on topic a, b: kafka-acls.sh --add --operation DescribeConfigs --topic a",
    ),
    "of a triggered rebalance": (
        a_patient(failure=PassFailure(NOW, refused("READ on group wordcount"), is_refusal=False)),
        "READ on group wordcount: kafka-acls.sh --add --operation Read --group wordcount",
    ),
}


@pytest.mark.parametrize("where", RIGHTS)
def test_a_right_that_is_missing_is_named_wherever_it_shows(where: str) -> None:
    subject, detail = RIGHTS[where]
    assert found(subject, Diagnosis.KafkaRightMissing) == [detail]


def test_a_right_is_told_once_though_two_requests_were_refused_for_it() -> None:
    subject = with_ends(EndsUnreadable(refused("DESCRIBE on topic x")))
    both = replace(subject, failure=PassFailure(NOW, refused("DESCRIBE on topic x"), is_refusal=False))
    assert len(told(both, Diagnosis.KafkaRightMissing)) == 1


def test_before_the_first_look_at_the_group_nothing_about_it_is_in_order() -> None:
    examination = examine(a_patient(readings=(), topic_configs={}))
    of_the_group = {
        *(Diagnosis.BrokersUnreachable, Diagnosis.KafkaRightMissing, Diagnosis.GroupProtocolUnsupported),
        *(Diagnosis.GroupUndecodable, Diagnosis.EndOffsetsUnread, Diagnosis.NoCopies, Diagnosis.IdentityUnstable),
        *(Diagnosis.MaxIdleTimeTooLong, Diagnosis.SessionTimeoutLong),
    }
    assert of_the_group <= codes(examination, FindingKind.UNCHECKED)
    assert of_the_group.isdisjoint(examination.fine)


def test_a_grace_period_of_which_no_end_was_seen_is_not_called_long_enough() -> None:
    subject = a_patient(container_ends=())
    assert not_checked(subject, Diagnosis.GracePeriodShort) == [
        (FindingKind.UNSEEN, "it is 60 s; how long `KafkaStreams#close()` takes shows only when a container ends")
    ]


def test_what_does_not_apply_is_neither_found_nor_in_order() -> None:
    examination = examine(a_patient(app={"keeps_state": False, "max_idle_time": None}))
    about_volumes = {Diagnosis.StateDirElsewhere, Diagnosis.IdentityUnstable, Diagnosis.MaxIdleTimeTooLong}
    assert about_volumes.isdisjoint({*examination.fine, *(one.diagnosis for one in examination.findings)})


@pytest.mark.parametrize("diagnosis", Diagnosis, ids=lambda one: one.name)
def test_every_diagnosis_says_what_is_the_case_why_it_matters_and_what_to_do(diagnosis: Diagnosis) -> None:
    assert isinstance(diagnosis.severity, Severity)
    for text in (diagnosis.title, diagnosis.why, diagnosis.fix):
        assert text.endswith(".")


def test_a_group_that_cannot_be_read_leaves_the_rest_unchecked_and_the_brokers_reached() -> None:
    subject = unreadable(Reason.GroupProtocolUnsupported, "it is a streams group")
    assert not_checked(subject, Diagnosis.GroupUndecodable) == [(FindingKind.UNCHECKED, "it is a streams group")]
    assert Diagnosis.BrokersUnreachable in examine(subject).fine


def test_settings_of_a_changelog_that_could_not_be_read_leave_the_age_of_state_unchecked() -> None:
    subject = a_patient(topic_configs={TOPIC: ConfigUnread("no answer")})
    assert not_checked(subject, Diagnosis.MaxIdleTimeTooLong) == [
        (FindingKind.UNCHECKED, "whether `state.maxIdleTime` is short enough is not known: no answer")
    ]
    assert Diagnosis.MaxIdleTimeTooLong not in examine(subject).fine


def test_a_pass_that_failed_and_one_that_was_refused_are_told_apart() -> None:
    failed, refused_ = STORIES[Diagnosis.PassFailed].ill, STORIES[Diagnosis.OperatorRightMissing].ill
    assert found(failed, Diagnosis.OperatorRightMissing) == found(refused_, Diagnosis.PassFailed) == []


def test_a_group_of_the_streams_protocol_that_is_well_has_nothing() -> None:
    assert examine(WELL_WITH_STREAMS).findings == ()
    assert {Diagnosis.AssignorAside}.isdisjoint(examine(WELL_WITH_STREAMS).fine)


def test_only_the_agent_shortens_the_heartbeats_of_the_streams_protocol() -> None:
    slow = with_agents(settings={"heartbeat": timedelta(seconds=3)}, words=CAPPED)
    assert found(of_streams_protocol(slow), Diagnosis.HeartbeatSlow) == []
    uncapped = of_streams_protocol(with_agents(settings={"heartbeat": timedelta(milliseconds=500)}))
    (detail,) = found(uncapped, Diagnosis.HeartbeatSlow)
    assert "the agent cannot shorten it" in detail


def test_settings_of_the_classic_protocol_are_not_judged_in_a_group_of_the_streams_protocol() -> None:
    static = with_static_members(with_agents(settings={"session_timeout": timedelta(minutes=5)}, words=CAPPED))
    assert found(of_streams_protocol(static), Diagnosis.SessionTimeoutLong) == []
    assert [kind for kind, _ in not_checked(of_streams_protocol(static), Diagnosis.SessionTimeoutLong)] == [
        FindingKind.UNSEEN
    ]


@pytest.mark.parametrize(
    ("source", "said"), [(LearnerSource.ON_DEMAND, "the standbys of the whole group"), (None, "do not come on demand")]
)
def test_a_limit_of_learners_bounds_nothing_in_a_group_of_the_streams_protocol(source: Any, said: str) -> None:
    subject = with_agents(words=CAPPED, policy={"max_learners": 9, "source": source})
    (detail,) = found(of_streams_protocol(subject), Diagnosis.LearnerLimitWithoutEffect)
    assert said in detail


def test_standbys_that_the_brokers_do_not_tell_are_not_judged() -> None:
    asked = of_streams_protocol(
        with_agents(words={**CAPPED, "standby_replicas": 1}), standbys=StandbySettingUnread("no right")
    )
    assert not_checked(asked, Diagnosis.StandbysWithoutEffect) == [(FindingKind.UNCHECKED, "no right")]


def test_that_one_agent_is_silent_is_not_called_a_lack_of_copies() -> None:
    demanded = with_agents(policy={"source": LearnerSource.ON_DEMAND})
    silent = changed(demanded, lambda word: AgentSilent(word.ordinal, "no answer"), 1)
    assert found(silent, Diagnosis.NoCopies) == []
    assert [kind for kind, _ in not_checked(silent, Diagnosis.NoCopies)] == [FindingKind.UNCHECKED]
    assert found(silent, Diagnosis.AgentSilent) == ["pod 1: no answer"]
