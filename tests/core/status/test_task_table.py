"""The task table: owners, what is known of them, copies with their lag, and who could take over."""

from dataclasses import replace

from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.agent_reports import LocalTask, TaskState
from streamapp.core.facts.group import Member
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.lag import EndsUnreadable
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskFacts, TaskSet, TopologyUnknown
from streamapp.core.reasons import Reason
from streamapp.core.status.task_table import Activity, CopySeen, Owner, Role, TaskRow, TaskTable, task_table
from tests.builders import POLICY, a_snapshot, ago, an_unreadable
from tests.support import example

ON_DEMAND = ScalingPolicy(agent=True, source=LearnerSource.ON_DEMAND)


def made(snapshot: Snapshot, policy: ScalingPolicy = POLICY) -> TaskTable:
    table = task_table(snapshot, policy)
    assert isinstance(table, TaskTable), table
    return table


def row(snapshot: Snapshot, number: int, policy: ScalingPolicy = POLICY) -> TaskRow:
    return made(snapshot, policy).rows[number]


def active(ordinal: int, lag: int | None = 0, *, good: bool = True) -> CopySeen:
    return CopySeen(example.pod(ordinal).ordinal, Role.ACTIVE, lag, is_caught_up=good)


def standby(ordinal: int, lag: int | None = 0, *, good: bool = True, role: Role = Role.STANDBY) -> CopySeen:
    return CopySeen(example.pod(ordinal).ordinal, role, lag, is_caught_up=good)


def owner(ordinal: int) -> Owner:
    return Owner(example.pod(ordinal).ordinal, f"wordcount-{ordinal}-consumer")


def test_every_task_has_its_owner_its_copies_and_who_could_take_over() -> None:
    table = made(a_snapshot())
    assert [str(one.task) for one in table.rows] == ["0_0", "0_1", "0_2", "0_3", "0_4", "0_5"]
    assert table.rows[0] == TaskRow(
        task=example.task(0),
        is_stateful=True,
        owner=owner(0),
        activity=Activity.RUNNING,
        copies=(active(0), standby(1)),
        covered_on=(Ordinal(0), Ordinal(1)),
        records=1_000_000,
    )
    assert (table.highest, table.limit, table.doubt) == (2, 10_000, "")
    assert (table.as_of, table.positions_as_of) == (ago(1), ago(6))


def test_the_highest_pod_covers_nothing() -> None:
    assert row(a_snapshot(), 4).copies == (standby(0), active(2))
    assert row(a_snapshot(), 4).covered_on == (0,)


def test_a_copy_that_is_behind_covers_nothing_and_says_how_far_it_is() -> None:
    behind = a_snapshot(members=example.members(3, lag=10_001))
    assert row(behind, 4).copies == (standby(0, 10_001, good=False), active(2))
    assert row(behind, 4).covered_on == ()
    near = a_snapshot(members=example.members(3, lag=10_000))
    assert row(near, 4).covered_on == (0,)


def test_the_applications_own_smaller_limit_counts() -> None:
    group = example.members(3, lag=600)
    snapshot = a_snapshot(members=group, agents=example.agents(group, recovery_lag=500))
    assert made(snapshot, ScalingPolicy(agent=True)).limit == 500
    assert row(snapshot, 4, ScalingPolicy(agent=True)).covered_on == ()


def test_a_copy_without_a_position_is_at_an_unknown_distance() -> None:
    assert row(a_snapshot(members=example.members(3, lag=None)), 4).copies == (standby(0, None, good=False), active(2))


def restoring() -> tuple[Member, ...]:
    return example.member(0, active=(0, 1), standby=(4, 5), running=False), *example.members(3)[1:]


def test_a_task_that_was_not_seen_running_restores_and_is_no_copy_however_near_it_is() -> None:
    one = row(a_snapshot(members=restoring()), 0)
    assert (one.activity, one.covered_on) == (Activity.RESTORING, (1,))
    assert one.copies[0] == active(0, example.END, good=False)
    group = example.members(3)
    ready = tuple(
        LocalTask(id=task, is_active=True, state=TaskState.RESTORING, positions={"counts": example.END})
        for task in map(example.task, (0, 1))
    )
    heard = example.agents(group[1:])
    said = tuple(example.report(group[0], ago_, tasks=ready) for ago_ in (2 * example.SECOND, 6 * example.SECOND))
    words = {**heard.words, Ordinal(0): said}
    near = row(a_snapshot(members=group, agents=replace(heard, words=words)), 0, ScalingPolicy(agent=True))
    assert (near.copies[0], near.activity) == (active(0, 0, good=False), Activity.RESTORING)


def test_a_task_that_nobody_or_two_have_is_named() -> None:
    nobody = tuple(example.member(n, active=[t for t in (2 * n, 2 * n + 1) if t != 5]) for n in range(3))
    one = row(a_snapshot(members=nobody), 5)
    assert (one.owner, one.activity, one.copies, one.covered_on) == (None, Activity.UNASSIGNED, (), ())
    twice = (example.member(0, active=range(6)), example.member(1, active=(3,)), example.member(2))
    assert row(a_snapshot(members=twice), 3).activity is Activity.TWICE


def test_on_demand_copies_are_called_learners_and_agents_say_how_far_they_are() -> None:
    group = (
        example.member(0, active=(0, 1, 4), standby=(5,), lag=None),
        example.member(1, active=(2, 3)),
        example.member(2, active=(5,)),
    )
    heard = example.agents((example.member(0, active=(0, 1, 4), standby=(5,), lag=70), *group[1:]))
    one = row(a_snapshot(members=group, agents=heard), 5, ON_DEMAND)
    assert one.copies == (standby(0, 70, role=Role.LEARNER), active(2))
    assert one.covered_on == (0,)


def test_where_no_join_was_watched_assignments_are_told_and_lags_are_not() -> None:
    unwatched = replace(example.reading(example.members(3), example.SECOND), rebalance=None)
    table = made(a_snapshot(readings=(unwatched,)))
    assert table.doubt.startswith("how far copies are is not known: ")
    assert table.positions_as_of is None
    assert table.rows[0].copies == (active(0, None, good=False), standby(1, None, good=False))
    assert table.rows[0].covered_on is None


def test_ends_that_could_not_be_read_after_the_agents_spoke_are_taken_from_the_join() -> None:
    group = example.members(3)
    heard = example.agents(group)
    deaf = replace(heard, ends=tuple(replace(one, ends=EndsUnreadable("refused")) for one in heard.ends))
    assert row(a_snapshot(members=group, agents=deaf), 0, ScalingPolicy(agent=True)).covered_on == (0, 1)


def test_a_task_without_state_has_no_copies_and_nothing_to_cover() -> None:
    stateless = TaskFacts(id=example.task(6), stateful=False)
    snapshot = a_snapshot(task_set=TaskSet((*example.task_set().tasks, stateless)))
    one = row(snapshot, 6)
    assert (one.is_stateful, one.copies, one.covered_on) == (False, (), None)


def test_what_is_not_known_at_all_is_refused_with_its_reason() -> None:
    assert task_table(a_snapshot(readings=()), POLICY) == Refusal(
        Reason.BrokersUnreachable, "the group has not been read yet"
    )
    assert task_table(a_snapshot(readings=(an_unreadable(),)), POLICY) == Refusal(
        Reason.BrokersUnreachable, "timed out"
    )
    assert task_table(a_snapshot(task_set=TopologyUnknown("why")), POLICY) == Refusal(
        Reason.TopologyUnknown, "why", needs_rebalance=False
    )
