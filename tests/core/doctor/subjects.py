"""Patients for examinations: two that are well, with and without agents, of which each test makes one ill."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from streamapp.core.doctor.diagnoses import Diagnosis, Finding, FindingKind
from streamapp.core.doctor.examine import Examination, examine
from streamapp.core.doctor.subject import Subject, TemplateFacts
from streamapp.core.facts.agent_reports import AgentReply, AgentReport, AgentsSeen, ClientSettings
from streamapp.core.facts.group import GroupDescription, Member
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.topic_configs import TopicConfig
from tests.builders import a_snapshot, an_end
from tests.support import example
from tests.support.streams import streams_group, streams_reading

TOPIC = "wordcount-counts-changelog"
DAY = timedelta(days=1)
KEPT_LONG = TopicConfig(frozenset({"compact"}), None, DAY)
KEPT_SHORT = TopicConfig(frozenset({"compact"}), None, timedelta(hours=1))
GOOD = ClientSettings(
    heartbeat=timedelta(milliseconds=500),
    session_timeout=timedelta(seconds=45),
    is_static=False,
    leaves_on_close=True,
    state_directory="/state",
)
TEMPLATE = TemplateFacts(grace_seconds=60, has_readiness_probe=True, mount_path="/state", state_directory="/state")


def members(standbys: bool = True) -> tuple[Member, ...]:
    return example.members(3, standbys=standbys)


def a_patient(
    group: Iterable[Member] | None = None,
    *,
    template: dict[str, Any] | None = None,
    app: dict[str, Any] | None = None,
    policy: dict[str, Any] | None = None,
    no_agent_key: str = "",
    failure: Any = None,
    **snapshot: Any,
) -> Subject:
    """One without agents, who is well but for what is changed."""
    facts = {"topic_configs": {TOPIC: KEPT_LONG}, "container_ends": (an_end(exit_code=143),), **snapshot}
    return Subject(
        snapshot=a_snapshot(
            desired=3,
            record=None,
            members=members() if group is None else group,
            app={"max_idle_time": timedelta(hours=20), **(app or {})},
            **facts,
        ),
        policy=ScalingPolicy(**(policy or {})),
        template=replace(TEMPLATE, **(template or {})),
        no_agent_key=no_agent_key,
        failure=failure,
    )


def with_agents(
    group: Iterable[Member] | None = None, *, settings: dict[str, Any] | None = None, **changes: Any
) -> Subject:
    """One with an agent in every pod, without a probe of its own, who is well but for what is changed.

    Args:
        group: The group's members; the agents say the same.
        settings: What all agents say of `ClientSettings` otherwise.
        changes: As for `a_patient`; `words` are fields of every agent's report.
    """
    group = members(standbys=False) if group is None else tuple(group)
    words = changes.pop("words", {})
    seen = changes.pop("agents", None)
    if seen is None:
        seen = example.agents(group, settings=replace(GOOD, **(settings or {})), **words)
    template = {"has_readiness_probe": False, **changes.pop("template", {})}
    policy = {"agent": True, **changes.pop("policy", {})}
    return a_patient(group, template=template, policy=policy, agents=seen, **changes)


def of_streams_protocol(subject: Subject, **streams: Any) -> Subject:
    """The same in a group of the streams protocol; `streams` are fields of what only such a group shows."""
    group = replace(streams_group(), **streams)
    classic = subject.snapshot.readings[0].group
    assert isinstance(classic, GroupDescription)
    readings = tuple(streams_reading(classic.members, ago, group) for ago in (1, 11))
    return replace(subject, snapshot=replace(subject.snapshot, readings=readings))


def changed(subject: Subject, change: Callable[[AgentReport], AgentReply], *ordinals: int) -> Subject:
    """The same where the agents of these pods say something else."""
    snapshot = subject.snapshot
    assert snapshot.agents is not None
    words = {
        ordinal: tuple(change(word) if ordinal in ordinals and isinstance(word, AgentReport) else word for word in said)
        for ordinal, said in snapshot.agents.words.items()
    }
    return replace(subject, snapshot=replace(snapshot, agents=AgentsSeen(words, snapshot.agents.ends)))


def on(snapshot: Snapshot, **changes: Any) -> Snapshot:
    return replace(snapshot, **changes)


def found(subject: Subject, diagnosis: Diagnosis) -> list[str]:
    """The particulars of what was found of one diagnosis."""
    return [one.detail for one in told(subject, diagnosis) if one.kind is FindingKind.FOUND]


def not_checked(subject: Subject, diagnosis: Diagnosis) -> list[tuple[FindingKind, str]]:
    """Why one was not checked."""
    return [(one.kind, one.detail) for one in told(subject, diagnosis) if one.kind is not FindingKind.FOUND]


def told(subject: Subject, diagnosis: Diagnosis) -> list[Finding]:
    return [one for one in examine(subject).findings if one.diagnosis is diagnosis]


def codes(examination: Examination, kind: FindingKind = FindingKind.FOUND) -> set[Diagnosis]:
    return {one.diagnosis for one in examination.findings if one.kind is kind}
