"""Applications with an agent in every pod, for the laws: in trouble, like those without."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from hypothesis import strategies as st

from streamapp.core.facts.agent_reports import (
    AgentReply,
    AgentReport,
    AgentSilent,
    AgentsSeen,
    AnnouncementAck,
    AnnouncementState,
    AsideKind,
    AssignorInactive,
    TaskState,
)
from streamapp.core.facts.group import FollowUp, GroupDescription, Member
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.lag import EndsUnreadable
from streamapp.core.facts.policy import LearnerSource, ScaleDownPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from tests.builders import a_record, ago, seconds
from tests.strategies import TROUBLES, rollouts, snapshots
from tests.support import example

Change = Callable[[AgentReport], AgentReply]

WORDS: dict[str, Change] = {
    "silent": lambda word: AgentSilent(word.ordinal, "connection refused"),
    "old": lambda word: replace(word, as_of=word.as_of - seconds(20)),
    "ahead of the clock": lambda word: replace(word, as_of=word.as_of + timedelta(minutes=5)),
    "of another pod": lambda word: replace(word, pod_uid="pod-before"),
    "without tasks": lambda word: replace(word, tasks=None),
    "empty": lambda word: replace(word, tasks=()),
    "restoring": lambda word: replace(
        word, tasks=tuple(replace(task, state=TaskState.RESTORING) for task in word.tasks or ())
    ),
    "without positions": lambda word: replace(
        word, tasks=tuple(replace(task, positions={}) for task in word.tasks or ())
    ),
    "of another JVM": lambda word: replace(word, incarnation=f"jvm-{word.sequence}"),
    "repeated": lambda word: replace(word, sequence=1),
    "of another process": lambda word: replace(word, process_id=example.process_id(8)),
    "without process": lambda word: replace(word, process_id=None),
    "not ours": lambda word: replace(word, is_ours=False, aside=AssignorInactive(AsideKind.OLDER_STREAMS, "3.7")),
    "own assignor": lambda word: replace(word, is_ours=False, aside=AssignorInactive(AsideKind.OWN_ASSIGNOR, "Foo")),
    "unbounded": lambda word: replace(word, recovery_lag=2**63 - 1),
    "another limit": lambda word: replace(word, recovery_lag=1),
    "told nothing": lambda word: replace(word, heard=AnnouncementAck(state=AnnouncementState.UNKNOWN)),
    "told that nobody leaves": lambda word: replace(
        word, heard=AnnouncementAck(state=AnnouncementState.EMPTY, epoch=Epoch(lease=0, counter=1))
    ),
    "told something older": lambda word: replace(word, heard=replace(word.heard, epoch=Epoch(lease=0, counter=1))),
    "about to forget": lambda word: replace(word, heard=replace(word.heard, expires_in=seconds(1))),
    "led by an older one": lambda word: replace(word, round=example.assigned(1, made_at=ago(1))),
    "led without a follow-up": lambda word: replace(word, round=example.assigned(follow_up_is_watch=False)),
}


def _with_ends_unread(seen: AgentsSeen) -> AgentsSeen:
    return AgentsSeen(seen.words, tuple(replace(one, ends=EndsUnreadable("refused")) for one in seen.ends))


@st.composite
def with_agents(draw: st.DrawFn, applications: st.SearchStrategy[Snapshot], trouble: bool = True) -> Snapshot:
    """The same application with agents that say what the brokers say, but for one of them."""
    snapshot = draw(applications)
    newest = next((one for one in snapshot.readings if isinstance(one.group, GroupDescription)), None)
    members: tuple[Member, ...] = ()
    if newest is not None and isinstance(newest.group, GroupDescription):
        members = tuple(one for one in newest.group.members if one.subscription and one.assignment)
    pods = len(snapshot.workload.pods)
    lowest = min(max(snapshot.app.desired.replicas, 1), pods) if pods else 1
    leaving = set(range(lowest, pods))
    agents = AgentsSeen()
    if members and leaving:
        agents = example.agents(members, heard=example.leaving(*leaving), round=example.assigned())
    elif members:
        agents = example.agents(members)
    if trouble and agents.words and draw(st.booleans()):
        ordinal = draw(st.sampled_from(sorted(agents.words)))
        change = WORDS[draw(st.sampled_from(sorted(WORDS)))]
        changed = set(draw(st.sampled_from(((0,), (1,), (0, 1)))))
        said = tuple(
            change(word) if number in changed and isinstance(word, AgentReport) else word
            for number, word in enumerate(agents.words[ordinal])
        )
        agents = AgentsSeen({**agents.words, Ordinal(ordinal): said}, agents.ends)
    if trouble and draw(st.integers(0, 9)) == 0:
        agents = _with_ends_unread(agents)
    return replace(snapshot, agents=agents)


@st.composite
def drained(draw: st.DrawFn, most_troubles: int = 1) -> Snapshot:
    """Scale-downs whose top pods hold little or nothing, most of them ready for it."""
    pods = draw(st.integers(2, 4))
    busy = draw(st.integers(1, pods - 1))
    numbers = range(example.PARTITIONS)
    owners = [draw(st.integers(0, busy - 1)) for _ in numbers]
    left = draw(st.sets(st.tuples(st.sampled_from(numbers), st.integers(1, pods - 1)), max_size=1))
    follow_up = draw(st.sampled_from((FollowUp.NONE, FollowUp.NONE, FollowUp.SCHEDULED)))
    members = tuple(
        example.member(
            pod,
            active=[n for n in numbers if owners[n] == pod],
            standby=[n for n, at in left if at == pod and owners[n] != pod],
            follow_up=follow_up,
        )
        for pod in range(pods)
    )
    desired = draw(st.integers(busy, pods - 1))
    base = example.snapshot(3, desired)
    statefulset = replace(example.statefulset(pods), record=a_record(granted=pods, target=desired))
    snapshot = replace(
        base,
        workload=replace(example.workload(pods), statefulset=statefulset),
        readings=example.two_readings(members),
    )
    for name in sorted(draw(st.sets(st.sampled_from(sorted(TROUBLES)), max_size=most_troubles))):
        snapshot = TROUBLES[name](snapshot)
    return draw(with_agents(st.just(snapshot)))


def in_any_case() -> st.SearchStrategy[Snapshot]:
    """All kinds of applications with agents."""
    return with_agents(snapshots()) | with_agents(rollouts()) | drained()


def agent_policies() -> st.SearchStrategy[ScalingPolicy]:
    """Those that have an agent."""
    return st.sampled_from(
        (
            *[ScalingPolicy(agent=True, allow_zero=True)] * 4,
            ScalingPolicy(agent=True, source=LearnerSource.ON_DEMAND, allow_zero=True),
            ScalingPolicy(agent=True, source=LearnerSource.STANDBYS),
            ScalingPolicy(agent=True, trigger_rebalance=False),
            ScalingPolicy(agent=True, scale_down=ScaleDownPolicy.IMMEDIATE, force_reason="because", allow_zero=True),
        )
    )
