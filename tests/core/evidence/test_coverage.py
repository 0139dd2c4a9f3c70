"""Coverage: every stateful task runs on, or has a caught-up copy on, a pod that stays."""

from dataclasses import replace
from datetime import timedelta

import pytest

from streamapp.core.actions.decision import TriggerRebalance
from streamapp.core.decide import decide
from streamapp.core.evidence.changelog_tails import with_tails
from streamapp.core.evidence.coverage import Copy, TaskWait
from streamapp.core.facts.group import GroupReading, Member
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.lag import EndsUnreadable, Measured, Unknown
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.reasons import Reason
from tests.builders import NOW, POLICY, a_pod, a_snapshot, ago, not_running, pods, seconds, told
from tests.support import example

LIMIT = POLICY.acceptable_recovery_lag


def three(*, lag: int | None = 0, first: Member | None = None) -> tuple[Member, ...]:
    """The example's group: the standbys of pod 2's tasks 0_4 and 0_5 are on pod 0."""
    members = example.members(3, lag=lag)
    return (first or members[0], *members[1:])


def wait(task: int, reason: Reason, copy: Copy | None, left: int | None) -> TaskWait:
    return TaskWait(task=TaskId(0, task), reason=reason, best=copy, records_to_go=left)


def behind(records: int) -> Copy:
    return Copy(Ordinal(0), Measured(records))


@pytest.mark.parametrize(
    ("lag", "verdict"),
    [(0, ("Step", "Covered")), (LIMIT, ("Step", "Covered")), (LIMIT + 1, ("Hold", "LearnersCatchingUp"))],
    ids=["at the end", "at the limit", "one record beyond"],
)
def test_a_copy_within_the_limit_is_caught_up(lag: int, verdict: tuple[str, str]) -> None:
    assert told(decide(a_snapshot(members=three(lag=lag)), POLICY)) == verdict


def test_what_is_waited_for_is_told_task_by_task() -> None:
    decision = decide(a_snapshot(members=three(lag=250_000)), POLICY)
    assert (decision.detail, decision.waiting_for) == (
        "2 tasks wait; 0_5 on ordinal 0 is 250000 records behind",
        (
            wait(4, Reason.LearnersCatchingUp, behind(250_000), 240_000),
            wait(5, Reason.LearnersCatchingUp, behind(250_000), 240_000),
        ),
    )


def test_a_copy_without_known_offsets_is_no_copy_to_rely_on() -> None:
    decision = decide(a_snapshot(members=three(lag=None)), POLICY)
    silent = Copy(Ordinal(0), Unknown("its holder reports no offsets for it"))
    assert (told(decision), decision.waiting_for) == (
        ("Hold", "LagUnknown"),
        (wait(4, Reason.LagUnknown, silent, None), wait(5, Reason.LagUnknown, silent, None)),
    )


def test_a_task_without_any_copy_waits_for_all_there_is_to_read() -> None:
    decision = decide(a_snapshot(members=example.members(3, standbys=False)), POLICY)
    assert (told(decision), decision.waiting_for) == (
        ("Hold", "NoLearners"),
        (wait(4, Reason.NoLearners, None, example.END), wait(5, Reason.NoLearners, None, example.END)),
    )


def test_a_directory_that_merely_lies_on_a_disk_is_no_copy() -> None:
    holder = example.member(0, active=(0, 1), standby=(4, 5))
    assert holder.assignment is not None
    dormant = replace(holder, assignment=replace(holder.assignment, standby=frozenset()))
    assert told(decide(a_snapshot(members=three(first=dormant)), POLICY)) == ("Hold", "NoLearners")


def test_a_staying_active_that_restores_is_not_covered_by_itself() -> None:
    # 0_0 and 0_1 were just given to pod 0; their standbys are on pod 1, which stays
    restoring = example.member(0, active=(0, 1), standby=(4, 5), running=False)
    assert told(decide(a_snapshot(members=three(first=restoring)), POLICY)) == ("Step", "Covered")
    # and here their only standbys are on pod 2, which leaves
    members = (
        example.member(0, active=(0, 1), standby=(4, 5), running=False),
        example.member(1, active=(2, 3)),
        example.member(2, active=(4, 5), standby=(0, 1, 2, 3)),
    )
    decision = decide(a_snapshot(members=members), POLICY)
    assert (told(decision), [str(one.task) for one in decision.waiting_for]) == (
        ("Hold", "TasksRestoring"),
        ["0_0", "0_1"],
    )


@pytest.mark.parametrize(
    ("holder", "reason"),
    [
        pytest.param(a_pod(0, terminating=True), "NoLearners", id="it is being deleted"),
        pytest.param(a_pod(0, container=not_running()), "NoLearners", id="its container does not run"),
        pytest.param(
            a_pod(0, container=replace(example.pod(0).container, running_since=ago(2))),
            "LagUnknown",
            id="its container began after the join",
        ),
        pytest.param(
            a_pod(0, container=replace(example.pod(0).container, running_since=ago(5))),
            "LagUnknown",
            id="its container began before the join was seen, and perhaps after it was made",
        ),
        pytest.param(
            a_pod(0, container=replace(example.pod(0).container, first_seen_at=ago(2))),
            "LagUnknown",
            id="its container was first seen after the join, and the clock of its node is behind",
        ),
    ],
)
def test_a_copy_counts_only_where_its_container_has_run_since_the_join(holder: object, reason: str) -> None:
    snapshot = a_snapshot(workload={"pods": (holder, *pods(3)[1:])})
    decision = decide(snapshot, POLICY)
    assert (told(decision), [str(one.task) for one in decision.waiting_for]) == (
        ("Hold", reason),
        ["0_4", "0_5"],
    )


def test_a_member_that_took_no_part_in_the_join_proves_nothing() -> None:
    # a dead static member stays listed with its old subscription
    readings = tuple(_without(reading, "wordcount-0-consumer") for reading in example.two_readings(three()))
    decision = decide(a_snapshot(readings=readings), POLICY)
    assert (told(decision), [str(one.task) for one in decision.waiting_for]) == (
        ("Hold", "NoLearners"),
        ["0_4", "0_5"],
    )


def _without(reading: GroupReading, member: str) -> GroupReading:
    assert reading.rebalance is not None
    return replace(
        reading, rebalance=replace(reading.rebalance, rejoined_members=reading.rebalance.rejoined_members - {member})
    )


def test_ends_that_could_not_be_read_hold() -> None:
    readings = tuple(
        replace(reading, rebalance=replace(reading.rebalance, ends=EndsUnreadable("not authorised")))
        for reading in example.two_readings(three())
        if reading.rebalance is not None
    )
    decision = decide(a_snapshot(readings=readings), POLICY)
    assert (told(decision), decision.detail) == (("Hold", "EndOffsetsUnread"), "not authorised")


def test_one_end_that_is_missing_makes_its_task_unknown() -> None:
    def blind(reading: GroupReading) -> GroupReading:
        assert reading.rebalance is not None
        ends = example.ends(NOW)
        known = {partition: end for partition, end in ends.partitions.items() if partition.partition != 4}
        return replace(reading, rebalance=replace(reading.rebalance, ends=replace(ends, partitions=known)))

    readings = tuple(blind(reading) for reading in example.two_readings(three()))
    decision = decide(a_snapshot(readings=readings), POLICY)
    assert (told(decision), [str(one.task) for one in decision.waiting_for]) == (("Hold", "LagUnknown"), ["0_4"])


def test_a_copy_beyond_the_end_leaves_the_other_copies_of_its_task_unknown_too() -> None:
    members = (
        example.member(0, active=(0, 1), standby=(4, 5)),
        example.member(1, active=(2, 3), standby=(5,), lag=-1),
        example.member(2, active=(4, 5), standby=(0, 1, 2, 3)),
    )
    decision = decide(a_snapshot(members=members), POLICY)
    assert (told(decision), decision.detail) == (
        ("Hold", "LagUnknown"),
        "1 task waits; 0_5 on ordinal 0: the copy on ordinal 1 lies beyond the end",
    )


def test_a_changelog_that_ends_earlier_than_before_was_made_anew_and_measures_nothing() -> None:
    def ends_at(reading: GroupReading, end: int) -> GroupReading:
        assert reading.rebalance is not None
        partitions = {
            partition: replace(known, end=end if partition.partition == 5 else known.end)
            for partition, known in example.ends(NOW).partitions.items()
        }
        ends = replace(example.ends(NOW), partitions=partitions)
        return replace(reading, rebalance=replace(reading.rebalance, ends=ends))

    newest, before = example.two_readings(three())
    grown = (ends_at(newest, example.END + 10), ends_at(before, example.END))
    assert told(decide(a_snapshot(readings=grown), POLICY)) == ("Step", "Covered")
    # The log that was made anew has grown nearly as far as the old one was at the look before.
    anew = (ends_at(newest, example.END + 10), ends_at(before, example.END + 20))
    decision = decide(a_snapshot(readings=anew), POLICY)
    assert (told(decision), decision.detail) == (
        ("Hold", "LagUnknown"),
        "1 task waits; 0_5 on ordinal 0: the end of its changelog fell since the look before: its topic was made anew",
    )


def _with_tails(lag: int, data_end: int | Unknown) -> Snapshot:
    def seen(reading: GroupReading) -> GroupReading:
        assert reading.rebalance is not None
        ends = with_tails(example.ends(NOW), dict.fromkeys(example.task_set().changelogs, data_end))
        return replace(reading, rebalance=replace(reading.rebalance, ends=ends))

    return a_snapshot(readings=tuple(seen(reading) for reading in example.two_readings(three(lag=lag))))


def test_markers_and_aborted_records_behind_the_last_record_are_nothing_to_wait_for() -> None:
    assert told(decide(_with_tails(50_000, example.END - 50_000 + LIMIT), POLICY)) == ("Step", "Covered")
    decision = decide(_with_tails(50_000, example.END - 50_000 + LIMIT + 1), POLICY)
    assert told(decision) == ("Hold", "LearnersCatchingUp")


def test_a_tail_that_could_not_be_read_holds_with_its_cause() -> None:
    why = "topic counter-changelog: tail: the broker refuses it to this user (grant READ on topic counter-changelog)"
    decision = decide(_with_tails(50_000, Unknown(why)), POLICY)
    assert (told(decision), decision.detail) == (
        ("Hold", "LagUnknown"),
        f"2 tasks wait; 0_5 on ordinal 0: 50000 records before the end, of which nobody can tell how many count: {why}",
    )
    assert [one.records_to_go for one in decision.waiting_for] == [40_000, 40_000]


def test_a_tail_that_could_not_be_read_is_of_no_concern_to_a_copy_within_the_limit() -> None:
    assert told(decide(_with_tails(LIMIT, Unknown("refused")), POLICY)) == ("Step", "Covered")


def test_the_worst_of_several_causes_gives_the_reason() -> None:
    first = example.member(0, active=(0, 1), standby=(5,), lag=50_000)
    assert told(decide(a_snapshot(members=three(first=first)), POLICY)) == ("Hold", "NoLearners")


def _flowing(lag: int, per_second: int) -> Snapshot:
    """Input at a steady rate: the earlier join saw ends that much lower, as long ago as it settled."""
    latest, earlier = example.two_readings(three(lag=lag))
    assert latest.rebalance is not None
    assert earlier.rebalance is not None
    gone = 14 * per_second
    then = replace(earlier.rebalance, ends=example.ends(earlier.rebalance.settled_at + seconds(1), example.END - gone))
    return a_snapshot(readings=(latest, replace(earlier, rebalance=then)))


def test_input_during_one_reading_that_exceeds_the_limit_is_told_apart_from_a_slow_copy() -> None:
    # four seconds pass between that rebalance and the reading of the ends: 3,000 rec/s are 12,000 records in them
    decision = decide(_flowing(lag=12_500, per_second=3_000), POLICY)
    assert (told(decision), decision.waiting_for[0].reason) == (("Hold", "LagLimitBelowRate"), Reason.LagLimitBelowRate)


@pytest.mark.parametrize(("lag", "per_second"), [(12_500, 1_000), (500_000, 3_000)], ids=["slow input", "far behind"])
def test_a_copy_that_is_behind_for_other_reasons_is_still_catching_up(lag: int, per_second: int) -> None:
    assert told(decide(_flowing(lag, per_second), POLICY)) == ("Hold", "LearnersCatchingUp")


def test_the_limit_is_the_policys() -> None:
    assert told(decide(a_snapshot(members=three(lag=60)), ScalingPolicy(acceptable_recovery_lag=50))) == (
        "Hold",
        "LearnersCatchingUp",
    )


@pytest.mark.parametrize("order", [1, -1], ids=["as listed", "reversed"])
def test_of_several_copies_the_nearest_counts(order: int) -> None:
    members = (
        example.member(0, active=(0, 1), standby=(4, 5), lag=90_000),
        example.member(1, active=(2, 3), standby=(0, 1, 4, 5), lag=10),
        example.member(2, active=(4, 5), standby=(2, 3)),
    )
    assert told(decide(a_snapshot(members=members[::order]), POLICY)) == ("Step", "Covered")


def test_an_hour_old_join_shows_coverage_but_no_fresh_one() -> None:
    readings = tuple(
        replace(
            reading,
            rebalance=replace(reading.rebalance, settled_at=reading.rebalance.settled_at - timedelta(minutes=30)),
        )
        for reading in example.two_readings(three())
        if reading.rebalance is not None
    )
    assert told(decide(a_snapshot(readings=readings), POLICY)) == ("Hold", "ReadingsPending")


def test_a_copy_of_a_run_that_may_have_begun_after_the_join_asks_for_another_join() -> None:
    """Its pod has standbys alone, so nothing else of it waits for a join; where none came, the hold would not end."""
    young = a_pod(0, container=replace(example.pod(0).container, first_seen_at=ago(2)))
    members = (
        example.member(0, standby=(4, 5)),
        example.member(1, active=(0, 1, 2, 3)),
        example.member(2, active=(4, 5), standby=(0, 1, 2, 3)),
    )
    held = decide(a_snapshot(members=members, workload={"pods": pods(3, p0=young)}), POLICY)
    rest = decide(a_snapshot(desired=3, record=None, members=members, workload={"pods": pods(3, p0=young)}), POLICY)
    assert [told(held), told(rest)] == [("Hold", "LagUnknown"), ("Steady", "Steady")]
    for decision in (held, rest):
        assert [one.reason for one in decision.plan if isinstance(one, TriggerRebalance)] == [Reason.LagUnknown]
