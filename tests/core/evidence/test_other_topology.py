"""A new template brings more sub-topologies, or fewer: which restarts go on, and what stops them."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.actions.decision import RestartPod, WriteHoldRecord
from streamapp.core.decide import decide
from streamapp.core.evidence.readings import comes_to_rest
from streamapp.core.facts.agent_reports import AgentSilent, AgentsSeen
from streamapp.core.facts.group import GroupDescription, GroupReading, GroupState, Member, NoOffsets
from streamapp.core.facts.ids import Ordinal, TaskId, TopicPartition
from streamapp.core.facts.policy import LearnerSource, RolloutPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskFacts, TaskSet, TopologyUnknown
from streamapp.core.gates import chains, evaluate
from streamapp.core.reasons import Reason
from tests.builders import NOW, POLICY, a_pod, a_record, a_snapshot, a_step, an_unreadable, pods
from tests.support import example

NEW = "wordcount-new"
NEW_TASKS = tuple(TaskId(1, number) for number in range(2))
IMMEDIATE = replace(POLICY, rollout=RolloutPolicy.IMMEDIATE)
SECOND = timedelta(seconds=1)


def more(*, stateful: bool) -> TaskSet:
    """The tasks with one sub-topology more."""
    behind = {one: {"more": TopicPartition("wordcount-more-changelog", one.partition)} for one in NEW_TASKS}
    new = (
        TaskFacts(
            id=one,
            stateful=stateful,
            changelogs=tuple(behind[one].values()) if stateful else (),
            source_partitions=(TopicPartition("other", one.partition),),
            stores=behind[one] if stateful else {},
        )
        for one in NEW_TASKS
    )
    return TaskSet((*example.task_set().tasks, *new))


def with_dirs(members: Iterable[Member], on: int) -> tuple[Member, ...]:
    """The group, where this pod has state of the new sub-topology on its disk."""
    return tuple(one if one.id != f"wordcount-{on}-consumer" else _with_offsets(one) for one in members)


def _with_offsets(one: Member) -> Member:
    assert one.subscription is not None
    offsets = {**one.subscription.offsets, **dict.fromkeys(NEW_TASKS, NoOffsets.RUNNING)}
    return replace(one, subscription=replace(one.subscription, offsets=offsets))


def with_new_tasks(members: Iterable[Member], on: int) -> tuple[Member, ...]:
    """The group under a leader of the new template: this pod runs the new sub-topology."""
    return tuple(one if one.id != f"wordcount-{on}-consumer" else _running_new(one) for one in members)


def _running_new(one: Member) -> Member:
    assert one.subscription is not None
    assert one.assignment is not None
    owned = one.subscription.owned_partitions | {TopicPartition("other", each.partition) for each in NEW_TASKS}
    return replace(
        one,
        assignment=replace(one.assignment, active=one.assignment.active | set(NEW_TASKS)),
        subscription=replace(one.subscription, owned_partitions=owned),
    )


def rolling(*updated: int, **changes: Any) -> Snapshot:
    """The newest template is in the StatefulSet; these pods have it. The group is as it is for a minute."""
    members = tuple(changes.pop("members", example.members(3)))
    changes.setdefault("readings", tuple(example.reading(members, ago * SECOND) for ago in (1, 15, 55)))
    with_it = {f"p{number}": a_pod(number, revision=NEW) for number in updated}
    workload = {"pods": pods(3, **with_it)}
    changes.setdefault("desired", 3)
    return a_snapshot(record=None, statefulset={"update_revision": NEW}, workload=workload, **changes)


def restarts(snapshot: Snapshot, policy: ScalingPolicy = POLICY) -> list[int]:
    return [step.ordinal for step in decide(snapshot, policy).plan if isinstance(step, RestartPod)]


def waits_for(snapshot: Snapshot, policy: ScalingPolicy = POLICY) -> tuple[str, str]:
    (told,) = [one for one in decide(snapshot, policy).conditions if one.type == "Reconciling"]
    return told.reason.name, told.detail


@pytest.mark.guarantee(8)
@pytest.mark.parametrize("standbys", [True, False])
@pytest.mark.parametrize("stateful", [True, False])
@pytest.mark.parametrize("updated", [(), (2,)], ids=["no pod has it", "an older leader assigns"])
def test_a_sub_topology_that_no_leader_assigns_yet_stops_no_rollout(
    updated: tuple[int, ...], stateful: bool, standbys: bool
) -> None:
    members = example.members(3, standbys=standbys)
    found = rolling(*updated, members=members, task_set=more(stateful=stateful))
    assert restarts(found) == [1 if updated else 2]


@pytest.mark.guarantee(1)
def test_where_all_pods_have_the_newest_template_a_sub_topology_that_nobody_runs_holds() -> None:
    asked = a_snapshot(desired=2, record=None, task_set=more(stateful=False))
    assert (decide(asked, POLICY).verdict.value, decide(asked, POLICY).reason.name) == ("Hold", "TaskUnassigned")


@pytest.mark.parametrize("on", [0, 2], ids=["an older pod", "a newer pod"])
def test_what_lies_of_it_on_a_disk_stops_none_either(on: int) -> None:
    """A version was rolled back: its leader had assigned the sub-topology, and what it made lies there for long."""
    assert restarts(rolling(2, members=with_dirs(example.members(3), on=on), task_set=more(stateful=True))) == [1]


@pytest.mark.guarantee(1)
def test_one_that_was_assigned_a_moment_ago_is_on_its_way() -> None:
    now, before = example.members(3), with_new_tasks(example.members(3), on=2)
    of_late = (example.reading(now, SECOND), example.reading(now, 15 * SECOND), example.reading(before, 40 * SECOND))
    found = replace(rolling(2, task_set=more(stateful=False)), readings=of_late)
    assert waits_for(found) == ("TaskUnassigned", "task 1_0, 1_1")
    for_long = (*of_late[:2], example.reading(now, 55 * SECOND), example.reading(before, 90 * SECOND))
    assert restarts(replace(found, readings=for_long)) == [1]
    watched_for_a_moment = of_late[:2]
    assert waits_for(replace(found, readings=watched_for_a_moment)) == ("TaskUnassigned", "task 1_0, 1_1")


@pytest.mark.parametrize("updated", [(), (2,)])
def test_a_text_that_lacks_what_the_group_runs_is_asked_for_unless_restarts_need_no_cover(
    updated: tuple[int, ...],
) -> None:
    found = rolling(*updated, members=with_new_tasks(example.members(3), on=2))
    assert (restarts(found), waits_for(found)) == ([], ("TaskNotInTopology", "task 1_0, 1_1"))
    assert restarts(found, IMMEDIATE) == [1 if updated else 2]


@pytest.mark.guarantee(1)
def test_even_then_a_task_on_its_way_is_waited_for() -> None:
    members = example.members(3)
    last = replace(members[2], assignment=replace(members[2].assignment, active=frozenset({example.task(4)})))  # type: ignore[type-var]
    assert restarts(rolling(members=(*members[:2], last)), IMMEDIATE) == []


UNMADE = TopologyUnknown("store more has no changelog", settled=example.task_set(), doubtful=frozenset({1}))
"""Before a leader of the new version has assigned, its changelog is not made."""


@pytest.mark.guarantee(8)
@pytest.mark.parametrize("updated", [(), (2,)])
def test_nor_does_one_whose_topics_no_leader_has_made(updated: tuple[int, ...]) -> None:
    assert restarts(rolling(*updated, task_set=UNMADE)) == [1 if updated else 2]
    lagging = rolling(*updated, members=example.members(3, lag=500_000), task_set=UNMADE)
    assert (restarts(lagging), waits_for(lagging)[0]) == ([], "LearnersCatchingUp")


@pytest.mark.guarantee(1)
def test_but_where_it_runs_or_all_have_the_newest_template_the_tasks_are_unknown() -> None:
    running = rolling(2, members=with_new_tasks(example.members(3), on=2), task_set=UNMADE)
    assert (restarts(running), waits_for(running)[0]) == ([], "TopologyUnknown")
    settled = a_snapshot(desired=2, record=None, task_set=UNMADE)
    assert (decide(settled, POLICY).verdict.value, decide(settled, POLICY).reason.name) == ("Hold", "TopologyUnknown")
    # What a member has of the settled ones is contradicted as ever.
    stateless = replace(UNMADE, settled=example.stateless_task_set())
    assert restarts(rolling(task_set=stateless)) == []


def led_by(*at: int) -> AgentsSeen:
    """Agents that report when their pod assigned last, in seconds ago; 0: it never did."""
    seen = example.agents(example.members(3))
    runs = {Ordinal(one): replace(example.assigned(), made_at=NOW - ago * SECOND) for one, ago in enumerate(at) if ago}
    words = {
        ordinal: tuple(one if isinstance(one, AgentSilent) else replace(one, round=runs.get(ordinal)) for one in said)
        for ordinal, said in seen.words.items()
    }
    return AgentsSeen(words, seen.ends)


@pytest.mark.guarantee(8)
@pytest.mark.parametrize(("leader", "next_"), [((0, 9, 0), 0), ((9, 0, 0), 1), ((9, 40, 0), 1), ((0, 9, 3), 1)])
def test_the_leader_of_the_older_template_restarts_last(leader: tuple[int, ...], next_: int) -> None:
    """A leader of the newer one gives members tasks that they do not know, and they join again and again."""
    policy = ScalingPolicy(agent=True, source=LearnerSource.STANDBYS)
    found = rolling(2, task_set=more(stateful=False), agents=led_by(*leader))
    assert restarts(found, policy) == [next_]
    # With one topology the highest restarts first, as ever.
    assert restarts(rolling(2, agents=led_by(*leader)), policy) == [1]


@pytest.mark.guarantee(8)
def test_a_leader_that_stays_is_not_the_last_where_the_only_other_older_pod_leaves() -> None:
    """That one waits for the rollout: a rollout that waited for it, too, would never end."""
    policy = ScalingPolicy(agent=True, source=LearnerSource.STANDBYS)
    led = rolling(1, desired=2, task_set=more(stateful=False), agents=led_by(9, 0, 0))
    (held,) = decide(led, policy).plan
    assert isinstance(held, WriteHoldRecord)
    found = a_snapshot(record=held.record, statefulset={"update_revision": NEW}, workload={"pods": led.workload.pods})
    found = replace(found, readings=led.readings, task_set=led.task_set, agents=led.agents)
    assert restarts(found, policy) == [0]


def restless(seconds: int = 60) -> Snapshot:
    """A pod of the older template is left, and its group joins twice a second."""
    members, looks = with_new_tasks(example.members(3), on=2), []
    for ago in range(1, seconds, 2):
        state = GroupState.STABLE if ago % 4 == 1 else GroupState.PREPARING_REBALANCE
        looks.append(example.reading(members, ago * SECOND, state))
    return rolling(1, 2, task_set=more(stateful=False), readings=tuple(looks))


@pytest.mark.guarantee(8)
def test_where_the_group_does_not_come_to_rest_only_its_users_word_restarts_the_others() -> None:
    assert (restarts(restless()), restarts(restless(), IMMEDIATE)) == ([], [0])
    assert restarts(restless(seconds=40), IMMEDIATE) == [], "it may still come to rest"
    workload = restless().workload
    ill = replace(
        restless(), workload=replace(workload, pods=(*workload.pods[:2], replace(workload.pods[2], ready=False)))
    )
    assert restarts(ill, IMMEDIATE) == [], "one at a time"


def unread(reason: Reason) -> tuple[GroupReading, ...]:
    return tuple(an_unreadable(ago, reason) for ago in range(1, 58, 3))


def without_members() -> tuple[GroupReading, ...]:
    empty = GroupDescription(GroupState.EMPTY, ())
    return tuple(GroupReading(ended_at=NOW - ago * SECOND, group=empty, rebalance=None) for ago in range(1, 58, 3))


def one_long_rebalance() -> tuple[GroupReading, ...]:
    members, moving = example.members(3), GroupState.PREPARING_REBALANCE
    return tuple(example.reading(members, ago * SECOND, moving) for ago in range(1, 58, 3))


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(
    "readings",
    [
        *map(unread, (Reason.BrokersUnreachable, Reason.GroupUndecodable, Reason.GroupOutdated)),
        (*unread(Reason.BrokersUnreachable)[:-4], example.reading(example.members(3), 58 * SECOND)),
        without_members(),
        one_long_rebalance(),
    ],
    ids=["unreachable", "undecodable", "outdated", "unreachable since", "without members", "one rebalance"],
)
def test_only_rebalances_that_were_seen_make_a_group_restless(readings: tuple[GroupReading, ...]) -> None:
    found = replace(restless(), readings=readings)
    assert comes_to_rest(readings)
    assert restarts(found, IMMEDIATE) == []


@pytest.mark.guarantee(2)
def test_a_restless_group_waives_neither_volumes_nor_identity_nor_the_order_of_pods() -> None:
    found = restless()
    workload, own = found.workload, found.workload.statefulset
    assert own is not None
    volumes = tuple(replace(one, deleting=True) if one.ordinal == 0 else one for one in workload.volumes)
    other_id = tuple(replace(one, process_id=example.process_id(7)) for one in workload.volumes)
    for changed in (
        replace(workload, volumes=volumes),
        replace(workload, volumes=other_id),
        replace(workload, statefulset=replace(own, first_ordinal=1)),
    ):
        assert restarts(replace(found, workload=changed), IMMEDIATE) == []
    moving = replace(found, readings=found.readings[1:])
    assert restarts(moving, IMMEDIATE) == [], "nobody shows who its members are"


def moving() -> Snapshot:
    return replace(restless(), readings=restless().readings[1:])


def with_a_stranger() -> Snapshot:
    return _seen_last(with_new_tasks(example.members(4), on=2))


def with_a_doubled_process_id() -> Snapshot:
    first, second, third = with_new_tasks(example.members(3), on=2)
    assert second.subscription is not None
    doubled = replace(second.subscription, process_id=example.process_id(0))
    seen = _seen_last((first, replace(second, subscription=doubled), third))
    volumes = seen.workload.volumes
    copied = (volumes[0], replace(volumes[1], process_id=volumes[0].process_id), *volumes[2:])
    return replace(seen, workload=replace(seen.workload, volumes=copied))


def with_another_process_id() -> Snapshot:
    workload = restless().workload
    other = tuple(replace(one, process_id=example.process_id(7 + one.ordinal)) for one in workload.volumes)
    return replace(restless(), workload=replace(workload, volumes=other))


def _seen_last(members: tuple[Member, ...]) -> Snapshot:
    return replace(restless(), readings=(example.reading(members, SECOND), *restless().readings[1:]))


RESTLESS_LOOKS = {
    "group_is_stable": moving,
    "no_member_is_foreign": with_a_stranger,
    "no_process_id_is_duplicated": with_a_doubled_process_id,
    "identity_holds": with_another_process_id,
}


def test_each_gate_before_the_word_for_a_restless_group_has_a_look_that_it_refuses() -> None:
    assert [gate.__name__ for gate in chains.RESTLESS_GATES] == list(RESTLESS_LOOKS)


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("name", RESTLESS_LOOKS)
def test_a_word_restarts_pods_of_a_restless_group_only_where_each_is_known_to_run_as_itself(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = RESTLESS_LOOKS[name]()
    assert restarts(looks, IMMEDIATE) == []
    others = tuple(gate for gate in chains.RESTLESS_GATES if gate.__name__ != name)
    monkeypatch.setattr(evaluate, "RESTLESS_GATES", others)
    assert restarts(looks, IMMEDIATE) == [0], "no other gate stands behind it"


@pytest.mark.guarantee(1)
def test_a_sub_topology_whose_tasks_are_all_on_their_way_is_no_other_topology() -> None:
    now, before = example.members(3), with_new_tasks(example.members(3), on=2)
    of_late = (example.reading(now, SECOND), example.reading(now, 12 * SECOND), example.reading(before, 14 * SECOND))
    found = replace(rolling(2, task_set=more(stateful=False)), readings=of_late)
    assert restarts(found, IMMEDIATE) == []


@pytest.mark.guarantee(8)
@pytest.mark.parametrize("policy", [POLICY, IMMEDIATE])
def test_a_step_waits_for_no_task_that_only_the_next_restart_brings(policy: ScalingPolicy) -> None:
    """Its user tells the newer topology while the step is open, and no older leader assigns what is new."""
    found = rolling(task_set=more(stateful=False))
    own = found.workload.statefulset
    assert own is not None
    record = replace(a_record(step=a_step()), hold=None)
    found = replace(found, workload=replace(found.workload, statefulset=replace(own, record=record)))
    assert decide(found, policy).reason.name == "StepClosed"
    assert decide(replace(found, readings=found.readings[:2]), policy).reason.name == "TaskUnassigned"
