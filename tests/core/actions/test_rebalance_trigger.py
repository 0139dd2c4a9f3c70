"""When a triggered rebalance helps, how often, and when none may be sent."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.actions.decision import TriggerRebalance
from streamapp.core.actions.rebalance_trigger import Waiting, failed, rebalance_for, seen, sent
from streamapp.core.decide import decide
from streamapp.core.evidence.eta import EtaAt, NeverAtThisSpeed, NotKnown
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.membership import PROBE_CLIENT_ID
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.group import FollowUp, GroupState, Member
from streamapp.core.facts.hold_record import HoldRecord, Progress
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Episode, RebalanceHistory, RefusedTriggers, Snapshot
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.reasons import Reason
from tests.builders import (
    NOW,
    POLICY,
    a_reading,
    a_record,
    a_snapshot,
    a_step,
    ago,
    an_unreadable,
    seconds,
    without_subscriptions,
)
from tests.support import example

GROUP = example.members(3)
LAGGING = example.members(3, lag=500_000)
REBALANCING = a_reading(without_subscriptions(GROUP), at=10, state=GroupState.PREPARING_REBALANCE, rebalance=None)
UNSETTLED = (example.member(0, active=(0, 1), standby=(4, 5), follow_up=FollowUp.SCHEDULED), *GROUP[1:])
UNPROVEN = tuple(example.member(n, active=(2 * n, 2 * n + 1), running=False) for n in range(3))


FOLLOW_UP = Waiting(refusal=Refusal(Reason.FollowUpScheduled), since=None)


def triggered(snapshot: Snapshot, policy: ScalingPolicy = POLICY) -> list[str]:
    return [step.reason.name for step in decide(snapshot, policy).plan if isinstance(step, TriggerRebalance)]


def is_due(
    *sent_ago: float,
    reason: Reason = Reason.LearnersCatchingUp,
    since: float = 3600,
    estimate: Any = None,
) -> bool:
    snapshot = a_snapshot(rebalances=RebalanceHistory(sent=tuple(ago(one) for one in sent_ago)))
    waiting = Waiting(refusal=Refusal(reason), since=ago(since), estimate=estimate or NotKnown())
    return rebalance_for(waiting, Evidence(snapshot, POLICY)) is not None


@pytest.mark.parametrize(
    ("sent_ago", "due"),
    [
        pytest.param((), True, id="the first at once"),
        pytest.param((9,), False, id="never two within ten seconds"),
        pytest.param((10,), True, id="the second after ten seconds"),
        pytest.param((30, 19), False, id="the third not before twenty"),
        pytest.param((30, 20), True, id="the third after twenty"),
        pytest.param((90, 80, 39), False, id="the fourth not before forty"),
        pytest.param((90, 80, 40), True, id="the fourth after forty"),
        pytest.param(tuple(range(299, 2000, 100)), False, id="never more rarely than every five minutes"),
        pytest.param(tuple(range(300, 2000, 100)), True, id="but that often"),
    ],
)
def test_triggered_rebalance_in_vain_come_ever_more_rarely(sent_ago: tuple[float, ...], due: bool) -> None:
    assert is_due(*sent_ago) is due


def test_triggered_rebalance_from_before_the_waiting_began_were_for_something_else() -> None:
    assert is_due(100, 90, 80, 70, 11, since=10) is True


def test_a_new_layout_means_that_they_were_not_in_vain() -> None:
    snapshot = a_snapshot(rebalances=RebalanceHistory(sent=tuple(map(ago, (100, 90, 80, 11))), layout_since=ago(10.5)))
    assert rebalance_for(FOLLOW_UP, Evidence(snapshot, POLICY)) is not None


@pytest.mark.parametrize(
    ("sent_ago", "estimate", "due"),
    [
        pytest.param((9,), EtaAt(ago(4)), False, id="never within ten seconds"),
        pytest.param((15, 30), EtaAt(NOW), True, id="as soon as the copies are caught up"),
        pytest.param((15, 30), EtaAt(NOW + seconds(1)), False, id="not before, for a while"),
        pytest.param((21, 30), EtaAt(NOW + seconds(36_000)), True, id="but an estimate puts nothing off"),
        pytest.param((15, 30), NeverAtThisSpeed(), False, id="ever more rarely where they never will be"),
        pytest.param((21, 30), NeverAtThisSpeed(), True, id="since the speed may change"),
    ],
)
def test_an_estimate_says_when_the_next_one_can_help(sent_ago: tuple[float, ...], estimate: Any, due: bool) -> None:
    assert is_due(*reversed(sent_ago), estimate=estimate) is due


@pytest.mark.parametrize(
    "reason", [Reason.NoLearners, Reason.ForeignMember, Reason.GroupRebalancing, Reason.StepOpen, Reason.FactsStale]
)
def test_what_a_rebalance_cannot_bring_is_not_rebalanced_for(reason: Reason) -> None:
    assert is_due(reason=reason) is False


@pytest.mark.parametrize(
    ("settled", "due"), [(9, False), (10, True)], ids=["the second reading would come too soon", "in time"]
)
def test_the_second_reading_is_fetched_ten_seconds_after_the_first(settled: float, due: bool) -> None:
    reading = a_reading(GROUP, rebalance=example.rebalance(GROUP, ago(settled)))
    assert triggered(a_snapshot(readings=(reading,))) == (["ReadingsPending"] if due else [])


@pytest.mark.parametrize(
    ("settled", "sent_ago", "after"),
    [
        pytest.param(8, 9, 2.0, id="when the second reading may be taken"),
        pytest.param(9, 6, 4.0, id="not before the last one is ten seconds ago"),
        pytest.param(2, 3, 5.0, id="and at the usual pace before that"),
    ],
)
def test_the_next_pass_comes_when_the_second_reading_is_due(settled: float, sent_ago: float, after: float) -> None:
    reading = a_reading(GROUP, rebalance=example.rebalance(GROUP, ago(settled)))
    decision = decide(a_snapshot(readings=(reading,), rebalances=RebalanceHistory(sent=(ago(sent_ago),))), POLICY)
    assert (decision.reason, decision.requeue_after) == (Reason.ReadingsPending, seconds(after))


def test_triggered_rebalance_that_were_in_vain_before_the_first_good_reading_do_not_delay_the_second() -> None:
    restoring = (example.member(0, active=(0, 1), standby=(4, 5), running=False), *GROUP[1:])
    members = (*restoring[:1], example.member(1, active=(2, 3)), example.member(2, active=(4, 5), standby=(0, 1, 2, 3)))
    good = tuple(
        replace(one, subscription=example.member(0, active=(0, 1), standby=(4, 5)).subscription)
        if one.id == members[0].id
        else one
        for one in members
    )
    readings = (a_reading(good, rebalance=example.rebalance(good, ago(10))), a_reading(members, at=30))
    waited = RebalanceHistory(sent=tuple(map(ago, (100, 80, 60, 40, 11))), layout_since=ago(120))
    assert triggered(a_snapshot(readings=readings, rebalances=waited)) == ["ReadingsPending"]


@pytest.mark.parametrize(
    ("sent_ago", "watched_ago", "is_due"),
    [
        pytest.param((3000, 2900, 2800, 2700, 2600, 400, 100), 99, True, id="positions were known until then"),
        pytest.param((3000, 2900, 2800, 2700, 2600, 400, 9), 399, False, id="never two within ten seconds"),
        pytest.param((3000, 2900, 2800, 2700, 2600, 30, 10), 99, True, id="a new coordinator shows three joins"),
        pytest.param((3000, 2900, 2800, 2700, 30, 20, 10), 99, False, id="and what shows none after that may never"),
        pytest.param((3000, 2900, 2800, 2700, 2600, 400, 100), None, False, id="no join was ever watched"),
    ],
)
def test_positions_that_a_new_coordinator_hides_are_soon_brought_back(
    sent_ago: tuple[float, ...], watched_ago: float | None, is_due: bool
) -> None:
    hidden = tuple(a_reading(GROUP, at=at, rebalance=None) for at in (1, 6))
    watched = (
        ()
        if watched_ago is None
        else (a_reading(LAGGING, at=watched_ago, rebalance=example.rebalance(LAGGING, ago(watched_ago))),)
    )
    rebalances = RebalanceHistory(sent=tuple(map(ago, sent_ago)), layout_since=ago(3600))
    snapshot = a_snapshot(readings=(*hidden, *watched), rebalances=rebalances, record=a_record(since=ago(3600)))
    assert triggered(snapshot) == (["PositionsUnknown"] if is_due else [])


def test_time_alone_brings_the_second_reading_where_positions_do_not_count() -> None:
    alone = a_snapshot(pods=1, desired=0, record=a_record(granted=1, target=0))
    assert triggered(replace(alone, readings=alone.readings[:1]), ScalingPolicy(allow_zero=True)) == []


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        pytest.param({"desired": 2, "members": LAGGING}, ["LearnersCatchingUp"], id="a hold whose copies lag"),
        pytest.param({"desired": 2, "members": UNSETTLED}, ["FollowUpScheduled"], id="a hold before convergence"),
        pytest.param(
            {"desired": 2, "readings": (a_reading(GROUP, rebalance=None),)},
            ["PositionsUnknown"],
            id="a hold without positions",
        ),
        pytest.param({"desired": 3, "record": None, "members": UNSETTLED}, ["FollowUpScheduled"], id="a scale-up"),
        pytest.param(
            {"desired": 3, "record": None, "members": UNPROVEN}, ["TasksRestoring"], id="a scale-up not seen to run"
        ),
        pytest.param(
            {"desired": 3, "record": None, "members": LAGGING},
            ["LearnersCatchingUp"],
            id="copies that lag after a change",
        ),
        pytest.param(
            {"desired": 3, "record": None, "members": example.members(3, lag=None)},
            ["LagUnknown"],
            id="copies that say nothing of themselves before their next join",
        ),
        pytest.param(
            {"desired": 3, "record": None, "readings": (a_reading(GROUP, rebalance=None),)},
            [],
            id="nor to know more than before",
        ),
        pytest.param({"desired": 3, "record": None}, [], id="not when all is well"),
        pytest.param(
            {"desired": 2, "members": UNPROVEN, "record": a_record(step=a_step())},
            ["TasksNotRunning"],
            id="an open step",
        ),
        pytest.param(
            {"desired": 2, "members": UNPROVEN, "record": a_record(step=a_step()), "app": {"paused": True}},
            ["TasksNotRunning"],
            id="an open step under a pause",
        ),
        pytest.param({"desired": 2, "members": UNSETTLED, "app": {"paused": True}}, [], id="not under a pause"),
        pytest.param({"desired": 2, "members": UNSETTLED, "app": {"dry_run": True}}, [], id="not in a dry run"),
        pytest.param({"desired": 5, "members": UNSETTLED}, [], id="not while new pods are being added"),
        pytest.param({"desired": 2, "members": UNSETTLED, "statefulset": {"is_ours": False}}, [], id="not for others"),
    ],
)
def test_what_a_rebalance_is_triggered_for(changes: dict[str, Any], reasons: list[str]) -> None:
    assert triggered(a_snapshot(**changes)) == reasons


def test_a_group_seen_while_it_worked_off_a_backlog_is_rebalanced_to_see_it_finished() -> None:
    # 4 s pass between that and the reading of the ends: at 3,000 rec/s no copy can be seen within 10,000 records
    assert triggered(too_fast()) == ["LagLimitBelowRate"]


def too_fast() -> Snapshot:
    """An application at rest that writes more between a join and the reading of the ends than a copy may lag."""
    latest, earlier = example.two_readings(example.members(3, lag=12_500))
    assert earlier.rebalance is not None
    ends = example.ends(earlier.rebalance.settled_at + seconds(1), example.END - 14 * 3_000)
    readings = (latest, replace(earlier, rebalance=replace(earlier.rebalance, ends=ends)))
    return a_snapshot(desired=3, record=None, readings=readings)


def triggered_within(hours: float, at_rest: Snapshot, lags: Sequence[int] = ()) -> list[float]:
    """Seconds from the beginning at which a rebalance is triggered, if none of them changes anything but the lag.

    Args:
        hours: For so long.
        at_rest: How it begins.
        lags: The lag of each copy after the first join, the second and so on; by default as at the beginning.
    """
    when: list[float] = []
    snapshot = at_rest
    for second in range(0, round(hours * 3600), 10):
        decision = decide(snapshot, POLICY)
        snapshot = replace(snapshot, episode=decision.convergence.episode)
        if any(isinstance(step, TriggerRebalance) for step in decision.plan):
            when.append(second)
            snapshot = replace(snapshot, rebalances=sent(snapshot.rebalances, snapshot.now))
            if lags:
                shown_next = example.two_readings(example.members(3, lag=lags[len(when)]))
                snapshot = replace(snapshot, readings=shown_next)
        shown = snapshot.rebalances
        earlier = RebalanceHistory(
            sent=tuple(at - seconds(10) for at in shown.sent),
            layout_since=None if shown.layout_since is None else shown.layout_since - seconds(10),
        )
        episode = snapshot.episode
        if episode is not None:
            improved_at = None if episode.improved_at is None else episode.improved_at - seconds(10)
            episode = replace(episode, began_at=episode.began_at - seconds(10), improved_at=improved_at)
        # Everything becomes ten seconds older, but for the readings, which the next poll renews as they are.
        snapshot = replace(snapshot, rebalances=earlier, episode=episode)
    return when


SIX = [0, 10, 30, 70, 150, 310]


@pytest.mark.parametrize(
    "at_rest",
    [
        pytest.param(too_fast(), id="LagLimitBelowRate"),
        pytest.param(a_snapshot(desired=3, record=None, members=LAGGING), id="LearnersCatchingUp"),
        pytest.param(a_snapshot(desired=3, record=None, members=example.members(3, lag=None)), id="LagUnknown"),
        pytest.param(a_snapshot(desired=3, record=None, members=UNPROVEN), id="TasksRestoring"),
        pytest.param(a_snapshot(desired=3, record=None, members=UNSETTLED), id="FollowUpScheduled"),
    ],
)
def test_an_application_at_rest_is_not_rebalanced_for_ever(at_rest: Snapshot) -> None:
    assert triggered_within(1.5, at_rest) == SIX


def test_copies_that_fall_ever_further_behind_bring_no_rebalance_for_ever() -> None:
    """Where records come faster than copies restore them, a join can show less lag than the one before all the same."""
    at_rest = a_snapshot(desired=3, record=None, members=LAGGING)
    ever_more = [560_000 + 40_000 * join - 60_000 * (join % 2) for join in range(100)]
    assert triggered_within(3, at_rest, ever_more) == SIX


def test_copies_that_catch_up_are_asked_for_until_they_have() -> None:
    at_rest = a_snapshot(desired=3, record=None, members=LAGGING)
    ever_less = [max(0, 500_000 - 40_000 * join) for join in range(100)]
    assert len(triggered_within(3, at_rest, ever_less)) == 13


def in_vain(**changes: Any) -> Snapshot:
    """At rest, with lagging copies, after six rebalances an hour ago that changed nothing."""
    before = RebalanceHistory(sent=tuple(ago(3600 + 10 * number) for number in range(6)))
    given = {"desired": 3, "record": None, "members": LAGGING, "rebalances": before, **changes}
    return a_snapshot(**given)


def test_it_is_rebalanced_again_when_something_changed() -> None:
    began = Episode(began_at=ago(7200), lag_at_start=9_000_000, least_lag=1_000)
    assert triggered(in_vain(episode=began)) == []
    new_layout = replace(in_vain().rebalances, layout_since=ago(60))
    assert triggered(in_vain(episode=began, rebalances=new_layout)) == ["LearnersCatchingUp"]
    assert triggered(in_vain(episode=replace(began, improved_at=ago(60)))) == ["LearnersCatchingUp"]
    less = replace(began, least_lag=8_000_000)
    assert triggered(in_vain(episode=less)) == ["LearnersCatchingUp"]


def test_a_hold_goes_on_to_ask() -> None:
    asked = RebalanceHistory(sent=tuple(ago(300 * number) for number in range(1, 12)))
    record = a_record(since=ago(7200))
    assert triggered(a_snapshot(members=LAGGING, record=record, rebalances=asked)) == ["LearnersCatchingUp"]


NOT_SHOWN = TopologyUnknown("no member shows state", may_show_after_a_join=True)


def test_members_that_may_show_their_state_are_asked_to_join_again() -> None:
    assert triggered(a_snapshot(desired=3, task_set=NOT_SHOWN, record=None)) == ["TopologyUnknown"]
    # In a hold, too.
    assert triggered(a_snapshot(task_set=NOT_SHOWN)) == ["TopologyUnknown"]


def test_nobody_is_asked_for_a_topology_that_joins_do_not_show() -> None:
    assert triggered(a_snapshot(desired=3, record=None, task_set=replace(NOT_SHOWN, may_show_after_a_join=False))) == []


def test_nobody_is_asked_for_ever_for_what_is_not_there_to_be_shown() -> None:
    assert is_due(60, 40, reason=Reason.TopologyUnknown)
    assert not is_due(3000, 2000, 1000, reason=Reason.TopologyUnknown)


def test_triggered_rebalance_can_be_forbidden() -> None:
    assert triggered(a_snapshot(members=LAGGING), ScalingPolicy(trigger_rebalance=False)) == []


@pytest.mark.parametrize(
    "readings",
    [
        pytest.param((an_unreadable(),), id="unreadable"),
        pytest.param(
            (a_reading(without_subscriptions(GROUP), state=GroupState.PREPARING_REBALANCE, rebalance=None),),
            id="unstable",
        ),
        pytest.param((a_reading(without_subscriptions(GROUP), rebalance=None),), id="not decoded"),
        pytest.param((a_reading(GROUP, at=11),), id="read too long ago"),
        pytest.param((a_reading(GROUP[:1]),), id="a single member"),
        pytest.param(
            (a_reading((*GROUP, replace(example.member(7), id="g", client_id=PROBE_CLIENT_ID))),),
            id="a probe left",
        ),
        pytest.param(
            (a_reading([replace(m, client_host="10.9.9.9") for m in GROUP[:2]], rebalance=None),), id="strangers"
        ),
    ],
)
def test_only_a_group_that_is_fit_for_it_is_rebalanced(readings: Any) -> None:
    snapshot = a_snapshot(readings=readings, workload={"volumes": ()})
    assert rebalance_for(FOLLOW_UP, Evidence(snapshot, POLICY)) is None


def test_the_probe_member_looks_like_a_member_of_the_lowest_pod() -> None:
    lonely: tuple[Member, ...] = GROUP[1:]
    snapshot = a_snapshot(members=lonely)
    assert rebalance_for(FOLLOW_UP, Evidence(snapshot, POLICY)) == TriggerRebalance(
        like_member="wordcount-1-consumer", reason=Reason.FollowUpScheduled
    )


def test_the_progress_of_a_hold_is_written_in_the_same_plan_as_a_triggered_rebalance() -> None:
    counted = Progress(best=2_000_000, improved_at=ago(60), counted_at=ago(90))
    record: HoldRecord = a_record(reason=Reason.LearnersCatchingUp, progress=counted)
    plan = decide(a_snapshot(members=LAGGING, record=record), POLICY).plan
    assert [type(step).__name__ for step in plan] == ["WriteHoldRecord", "TriggerRebalance"]


def test_a_triggered_rebalance_is_remembered_for_half_an_hour() -> None:
    memory = RebalanceHistory(sent=(ago(1801), ago(1800)), layout_since=ago(5))
    assert sent(memory, NOW) == RebalanceHistory(sent=(ago(1800), NOW), layout_since=ago(5))


@pytest.mark.parametrize(
    ("history", "after", "changed"),
    [
        pytest.param([a_reading(GROUP, at=20)], a_reading(GROUP), False, id="the same layout"),
        pytest.param([a_reading(GROUP, at=20)], a_reading(LAGGING), False, id="other positions"),
        pytest.param([a_reading(GROUP, at=20)], a_reading(GROUP[:2]), True, id="a member less"),
        pytest.param([], a_reading(GROUP), False, id="nothing to compare with"),
        pytest.param([an_unreadable(20)], a_reading(GROUP[:2]), False, id="nothing read before"),
        pytest.param([a_reading(GROUP, at=20)], a_reading(without_subscriptions(GROUP)), False, id="not decoded"),
        pytest.param([REBALANCING, a_reading(GROUP, at=20)], a_reading(GROUP[:2]), True, id="a rebalance was seen"),
        pytest.param([REBALANCING, a_reading(GROUP, at=20)], a_reading(GROUP), False, id="it brought nothing new"),
        pytest.param(
            [a_reading(GROUP, at=20), a_reading(GROUP[:2], at=40)], a_reading(GROUP), False, id="the last one counts"
        ),
    ],
)
def test_the_age_of_the_layout_is_remembered(history: Any, after: Any, changed: bool) -> None:
    memory = RebalanceHistory(sent=(ago(30),), layout_since=ago(60))
    expected = replace(memory, layout_since=after.ended_at) if changed else memory
    assert seen(memory, history, after) == expected


def refused(times: int, seconds_ago: float) -> RebalanceHistory:
    """So many triggers failed, the last one so long ago."""
    return RebalanceHistory(refused=RefusedTriggers(times=times, at=ago(seconds_ago), why="READ is missing."))


@pytest.mark.parametrize(
    ("times", "seconds_ago", "is_sent"),
    [(1, 1.9, False), (1, 2, True), (2, 3.9, False), (2, 4, True), (8, 255, False), (9, 299, False), (99, 300, True)],
)
def test_a_trigger_that_fails_is_tried_again_ever_more_rarely(times: int, seconds_ago: float, is_sent: bool) -> None:
    at_rest = a_snapshot(members=UNSETTLED, desired=3, record=None, rebalances=refused(times, seconds_ago))
    assert triggered(at_rest) == (["FollowUpScheduled"] if is_sent else [])


def test_whatever_waits_for_a_rebalance_says_that_its_triggers_fail() -> None:
    at = f"{ago(3) + seconds(4):%H:%M:%S} UTC."
    told = f"A rebalance trigger failed 2 times: READ is missing. The next one follows at {at}"
    at_rest = decide(a_snapshot(members=UNSETTLED, desired=3, record=None, rebalances=refused(2, 3)), POLICY)
    missing = at_rest.convergence.waits_for
    assert missing is not None
    assert missing.detail.endswith(told)
    assert [one.detail.endswith(told) for one in at_rest.conditions if one.type == "Converged"] == [True]
    held = decide(a_snapshot(members=LAGGING, rebalances=refused(2, 3)), POLICY)
    assert held.detail.endswith(told)
    rolling = a_snapshot(
        members=LAGGING, desired=3, record=None, statefulset={"update_revision": "new"}, rebalances=refused(2, 3)
    )
    (reconciling,) = [one for one in decide(rolling, POLICY).conditions if one.type == "Reconciling"]
    assert reconciling.detail.endswith(told)
    reading = a_reading(GROUP, rebalance=None)
    quiet = decide(a_snapshot(readings=(reading,), desired=3, record=None, rebalances=refused(2, 3)), POLICY)
    assert not any("failed" in one.detail for one in quiet.conditions)


def test_a_hold_that_begins_after_a_failure_tries_at_once() -> None:
    failed_before = replace(a_snapshot(members=LAGGING), rebalances=refused(9, 61))
    assert triggered(failed_before) == ["LearnersCatchingUp"]
    assert triggered(replace(failed_before, rebalances=refused(9, 59))) == []


def test_failures_are_forgotten_with_the_next_trigger_or_another_layout_but_not_for_a_probe_member() -> None:
    history = failed(failed(RebalanceHistory(), ago(9), "no answer"), ago(5), "READ is missing")
    assert history.refused == RefusedTriggers(times=2, at=ago(5), why="READ is missing")
    assert sent(history, NOW).refused is None
    before, moved = a_reading(GROUP, at=8), a_reading(UNPROVEN[:2], at=1)
    assert seen(history, (before,), moved).refused is None
    probe = replace(example.member(7), client_id=PROBE_CLIENT_ID, client_host="10.9.9.9")
    assert seen(history, (before,), a_reading((*GROUP, probe), at=1)).refused == history.refused
    alike = replace(probe, client_id=f"{PROBE_CLIENT_ID}-StreamThread-1-consumer")
    assert seen(history, (before,), a_reading((*GROUP, alike), at=1)).refused is None
