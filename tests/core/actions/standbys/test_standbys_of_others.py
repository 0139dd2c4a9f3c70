"""Raises that arrive late, values that another hand set, and holds that follow each other."""

from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.actions.decision import (
    GrantReplicas,
    SetStandbys,
    WriteHoldRecord,
)
from streamapp.core.actions.standbys import BEHIND
from streamapp.core.decide import decide, decide_raise
from streamapp.core.facts.group import StandbySetting, StandbySettingUnread
from streamapp.core.facts.hold_record import Epoch, HoldRecord, RaisedStandbys, RaiseState
from streamapp.core.facts.snapshot import Snapshot
from tests.builders import a_hold, ago, description, seconds
from tests.support import example
from tests.support.raised_standbys import (
    BARE,
    DEFAULT,
    FOREIGN,
    POLICY,
    RAISED,
    READ_AT,
    RETURNED,
    RETURNING,
    SEEN,
    SPREAD,
    TWICE,
    a_case,
    on_record,
    told_of_standbys,
    written,
)


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("raised", [SEEN, TWICE], ids=["seen", "a second standby"])
@pytest.mark.parametrize(("at", "is_foreign"), [(0.5, False), (12, True)])
def test_an_answer_from_before_another_operator_saw_its_raise_says_nothing_of_other_hands(
    raised: RaisedStandbys, at: float, is_foreign: bool
) -> None:
    """As when an operator was frozen for seconds: what it read then is older than what its successor wrote down."""
    known = replace(raised, at=ago(at))
    found = on_record(decide(a_case(raised=known), POLICY))
    assert found == (replace(known, state=RaiseState.FOREIGN, at=READ_AT) if is_foreign else known)


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("is_held", [True, False], ids=["it is needed", "nothing needs it any more"])
@pytest.mark.parametrize(
    ("raised", "earlier"),
    [
        (SEEN, DEFAULT),
        (replace(SEEN, before=0), StandbySetting(0, is_set=True)),
        (replace(TWICE, state=RaiseState.SEEN), StandbySetting(1, is_set=True)),
        (replace(TWICE, state=RaiseState.SEEN), DEFAULT),
        (RETURNING, DEFAULT),
    ],
    ids=["the default", "a value", "the first raise", "what was before both", "the old value is on its way"],
)
def test_a_broker_that_is_behind_the_one_that_showed_a_raise_ends_no_record(
    raised: RaisedStandbys, earlier: StandbySetting, is_held: bool
) -> None:
    """Any broker is asked. Else the raise would be another hand's, or past, as soon as it is shown again."""
    just_seen = replace(raised, at=READ_AT - seconds(0.3))
    behind = decide(a_case(SPREAD, earlier, just_seen, is_held=is_held), POLICY)
    assert (written(behind), on_record(behind)) == ([], just_seen)
    shown = StandbySetting(raised.to, is_set=True)
    over = decide(a_case(SPREAD, shown, on_record(behind), is_held=False), POLICY)
    assert written(over) == [raised.before]
    later = replace(raised, at=READ_AT - BEHIND)
    assert on_record(decide(a_case(SPREAD, earlier, later, is_held=is_held), POLICY)) != later


@pytest.mark.guarantee(2)
def test_the_record_ends_when_the_old_value_is_shown_and_no_write_is_on_its_way() -> None:
    """One that an operator sent before it froze can arrive a minute later, whatever was done meanwhile."""
    done = decide(a_case(SPREAD, DEFAULT, replace(SEEN, lease=None), is_held=False), POLICY)
    assert (written(done), on_record(done)) == ([], RETURNED)
    assert told_of_standbys(done) == ["0"]
    later = decide(a_case(SPREAD, DEFAULT, replace(RETURNED, at=ago(61)), is_held=False), POLICY)
    assert (written(later), on_record(later), told_of_standbys(later)) == ([], None, [])
    for ended in (SEEN, replace(SEEN, lease=None, at=ago(61))):
        at_once = decide(a_case(SPREAD, DEFAULT, ended, is_held=False), POLICY)
        assert (written(at_once), on_record(at_once), told_of_standbys(at_once)) == ([], None, ["0"])
    late = decide(a_case(SPREAD, DEFAULT, RAISED, is_held=False), POLICY)
    assert on_record(late) == RAISED
    old = replace(RAISED, at=ago(61))
    assert on_record(decide(a_case(SPREAD, DEFAULT, old, is_held=False), POLICY)) is None


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("is_held", [True, False])
@pytest.mark.parametrize(
    ("raised", "late", "found"),
    [
        (RETURNED, 1, SEEN),
        (FOREIGN, 1, replace(SEEN, before=2)),
        (replace(TWICE, state=RaiseState.RETURNED), 2, replace(TWICE, state=RaiseState.SEEN)),
        (replace(TWICE, state=RaiseState.RETURNED), 1, replace(SEEN, instead_of=1)),
        (replace(TWICE, state=RaiseState.SEEN), 1, replace(SEEN, instead_of=1)),
    ],
    ids=["after it was put back", "over another hand's value", "the second", "the first of two", "the first again"],
)
def test_a_raise_that_arrives_late_is_put_back(
    raised: RaisedStandbys, late: int, found: RaisedStandbys, is_held: bool
) -> None:
    """To what the users had, or to what another hand set before the raise overwrote it."""
    raised, found = replace(raised, lease=None), replace(found, lease=None)
    decision = decide(a_case(SPREAD, StandbySetting(late, is_set=True), raised, is_held=is_held), POLICY)
    state = RaiseState.SEEN if is_held else RaiseState.RETURNING
    assert on_record(decision) == replace(found, at=READ_AT, state=state)
    assert written(decision) == ([] if is_held else [found.before])


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(
    "raised",
    [replace(RETURNED, at=ago(61)), replace(FOREIGN, lease=None, at=ago(61)), FOREIGN],
    ids=["much later", "much later, over another hand's", "under the same Lease"],
)
def test_the_same_value_is_another_hands_if_no_raise_can_arrive(raised: RaisedStandbys) -> None:
    """Whoever sent its raises itself knows that the brokers have got the last of them."""
    decision = decide(a_case(SPREAD, StandbySetting(1, is_set=True), raised, is_held=False), POLICY)
    kept = on_record(decision)
    assert written(decision) == []
    # under the same Lease nothing is waited for, else it stays on record for a while
    is_over = raised.lease is not None
    assert kept == (None if is_over else replace(raised, state=RaiseState.RETURNED, before=1, at=READ_AT))


@pytest.mark.guarantee(2)
def test_who_raised_them_itself_waits_for_a_late_raise_if_another_operator_has_decided_since() -> None:
    """As one that was frozen, and acts for seconds before it knows that it lost the Lease."""
    snapshot = a_case(SPREAD, StandbySetting(1, is_set=True), FOREIGN)
    statefulset = snapshot.workload.statefulset
    assert statefulset is not None
    record = HoldRecord(epoch=Epoch(lease=1, counter=2), hold=a_hold(), standbys=FOREIGN)
    snapshot = replace(snapshot, workload=replace(snapshot.workload, statefulset=replace(statefulset, record=record)))
    assert on_record(decide(snapshot, POLICY)) == replace(SEEN, before=2, at=READ_AT)


@pytest.mark.guarantee(2)
def test_a_second_raise_to_what_another_hand_had_set_ends_with_that_value() -> None:
    """Else it would be written for ever."""
    second = replace(TWICE, before=2, state=RaiseState.SEEN, lease=None)
    decision = decide(a_case(SPREAD, StandbySetting(2, is_set=True), second, is_held=False), POLICY)
    assert (written(decision), on_record(decision)) == ([], replace(second, state=RaiseState.RETURNED))


def in_the_next_hold(setting: StandbySetting, raised: RaisedStandbys) -> Snapshot:
    snapshot = a_case(BARE, setting, raised)
    statefulset = snapshot.workload.statefulset
    assert statefulset is not None
    record = HoldRecord(epoch=Epoch(lease=0, counter=1), hold=replace(a_hold(), since=ago(30)), standbys=raised)
    return replace(snapshot, workload=replace(snapshot.workload, statefulset=replace(statefulset, record=record)))


@pytest.mark.parametrize(
    ("raised", "setting"),
    [
        (replace(RETURNED, at=ago(61)), DEFAULT),
        (replace(RETURNED, lease=0), DEFAULT),
        (replace(FOREIGN, before=0, at=ago(40)), StandbySetting(0, is_set=True)),
    ],
    ids=["returned", "returned under the same Lease", "another hand's in an earlier hold"],
)
def test_the_next_hold_raises_anew(raised: RaisedStandbys, setting: StandbySetting) -> None:
    """The record of the last one is still there for what may arrive late."""
    found = on_record(decide(in_the_next_hold(setting, raised), POLICY))
    assert found == replace(RAISED, before=raised.before, at=example.NOW)


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(
    ("raised", "setting"),
    [
        (RETURNED, DEFAULT),
        (replace(TWICE, lease=None, state=RaiseState.RETURNED), DEFAULT),
        (replace(FOREIGN, before=0, lease=None, at=ago(40)), StandbySetting(0, is_set=True)),
    ],
    ids=["returned", "a second standby returned", "another hand's in an earlier hold"],
)
def test_nothing_is_raised_anew_while_a_write_of_a_former_operator_can_arrive(
    raised: RaisedStandbys, setting: StandbySetting
) -> None:
    """Its raise could arrive when the new record has ended or is for less, and its old value look like another's."""
    decision = decide(in_the_next_hold(setting, raised), POLICY)
    assert (written(decision), on_record(decision)) == ([], raised)


@pytest.mark.guarantee(2)
def test_what_another_hand_set_in_one_rollout_does_not_keep_the_next_one_from_raising() -> None:
    """There is no record of when a rollout began, so that it was over counts."""
    foreign = replace(FOREIGN, before=None, lease=None)
    rolling: dict[str, Any] = {"is_held": False, "statefulset": {"update_revision": "new"}}
    assert on_record(decide(a_case(BARE, DEFAULT, foreign, **rolling), POLICY)) == foreign
    over = decide(a_case(BARE, DEFAULT, foreign, is_held=False), POLICY)
    left = on_record(over)
    assert left == replace(foreign, state=RaiseState.RETURNED)
    assert told_of_standbys(over) == ["0, which another hand has set"]
    later = replace(left, at=ago(61))
    assert on_record(decide(a_case(BARE, DEFAULT, later, **rolling), POLICY)) == replace(RAISED, at=example.NOW)


def is_held_by_a_user() -> Snapshot:
    return a_case(SPREAD, StandbySetting(1, is_set=True), SEEN, app={"held_because": "a user asks"})


def is_growing_in_a_rollout() -> Snapshot:
    return a_case(
        SPREAD,
        StandbySetting(1, is_set=True),
        SEEN,
        is_held=False,
        desired=4,
        statefulset={"update_revision": "new"},
    )


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(
    ("ends", "again"),
    [
        (is_held_by_a_user(), {}),
        (is_growing_in_a_rollout(), {"is_held": False, "statefulset": {"update_revision": "new"}}),
    ],
    ids=["a hold", "a rollout"],
)
def test_what_goes_on_raises_anew_after_the_operator_put_the_old_value_back(
    ends: Snapshot, again: dict[str, Any]
) -> None:
    """Else its own write looks like another hand's, and the hold or the rollout waits for ever."""
    decision = decide(ends, POLICY)
    returning = on_record(decision)
    assert (written(decision), returning) == ([None], RETURNING)
    kinds = [type(step) for step in decision.plan]
    assert GrantReplicas in kinds or kinds.index(WriteHoldRecord) < kinds.index(SetStandbys)
    shown = decide(a_case(BARE, StandbySetting(1, is_set=True), returning, **again), POLICY)
    assert (written(shown), on_record(shown)) == ([None], RETURNING)
    back = decide(a_case(BARE, DEFAULT, returning, **again), POLICY)
    assert (written(back), on_record(back)) == ([], replace(RAISED, at=example.NOW))


@pytest.mark.guarantee(2)
def test_the_old_value_is_written_until_it_is_shown_however_long_ago_the_raise_was() -> None:
    first = replace(TWICE, state=RaiseState.RETURNING, at=ago(3_600))
    for shown in (1, 2):
        decision = decide(a_case(SPREAD, StandbySetting(shown, is_set=True), first, is_held=False), POLICY)
        assert (written(decision), on_record(decision)) == ([None], first)
    done = decide(a_case(SPREAD, DEFAULT, first, is_held=False), POLICY)
    assert (written(done), on_record(done), told_of_standbys(done)) == ([], None, ["0"])
    soon = decide(a_case(SPREAD, DEFAULT, replace(RETURNING, lease=None), is_held=False), POLICY)
    assert (written(soon), on_record(soon), told_of_standbys(soon)) == ([], RETURNED, ["0"])
    former = replace(RETURNING, lease=None)
    other = decide(a_case(SPREAD, StandbySetting(2, is_set=True), former, is_held=False), POLICY)
    assert (written(other), on_record(other)) == ([], replace(RETURNED, before=2, at=READ_AT))
    assert told_of_standbys(other) == ["2, which another hand has set"]


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("setting", [StandbySetting(2, is_set=True), StandbySetting(0, is_set=True), DEFAULT])
def test_a_value_of_another_hand_stays(setting: StandbySetting) -> None:
    value = setting.replicas if setting.is_set else None
    during = decide(a_case(BARE, setting, SEEN), POLICY)
    foreign = replace(FOREIGN, before=value, at=READ_AT)
    assert (written(during), on_record(during)) == ([], foreign)
    old = replace(foreign, at=ago(61))
    again = decide(a_case(BARE, StandbySetting(1, is_set=True), old), POLICY)
    assert (written(again), on_record(again)) == ([], replace(foreign, before=1))
    after = decide(a_case(SPREAD, setting, old, is_held=False), POLICY)
    assert (written(after), on_record(after)) == ([], None)
    assert told_of_standbys(after) == [f"{setting.replicas}, which another hand has set"]


@pytest.mark.guarantee(2)
@pytest.mark.guarantee(2)
@pytest.mark.parametrize(
    ("raised", "change"),
    [
        (SEEN, "--delete-config streams.num.standby.replicas"),
        (replace(RETURNING, before=0), "=0"),
        (RAISED, "--delete-config streams.num.standby.replicas"),
    ],
    ids=["seen", "returning", "wanted"],
)
def test_what_was_raised_on_another_kafka_cluster_is_not_put_back_on_this_one(
    raised: RaisedStandbys, change: str
) -> None:
    there = replace(raised, cluster="former")
    decision = decide(
        a_case(setting=StandbySetting(1, is_set=True, cluster="present"), raised=there, is_held=False), POLICY
    )
    assert (written(decision), on_record(decision)) == ([], None)
    (told,) = told_of_standbys(decision)
    assert told.startswith("1 may stay on Kafka cluster former: `spec.kafka` leads to cluster present now.")
    assert told.endswith(change)


@pytest.mark.parametrize(("there", "here"), [("one", "one"), (None, "one"), ("one", None)])
def test_what_was_raised_on_this_kafka_cluster_or_on_an_unknown_one_is_put_back(
    there: str | None, here: str | None
) -> None:
    setting = StandbySetting(1, is_set=True, cluster=here)
    decision = decide(a_case(setting=setting, raised=replace(SEEN, cluster=there), is_held=False), POLICY)
    assert written(decision) == [None]


@pytest.mark.parametrize("raised", [RETURNED, FOREIGN])
def test_of_another_kafka_cluster_where_nothing_stays_raised_nothing_is_said(raised: RaisedStandbys) -> None:
    setting = StandbySetting(1, is_set=True, cluster="present")
    decision = decide(a_case(setting=setting, raised=replace(raised, cluster="former"), is_held=False), POLICY)
    assert (written(decision), on_record(decision), told_of_standbys(decision)) == ([], None, [])


def test_a_hold_raises_standbys_anew_on_another_kafka_cluster() -> None:
    setting = replace(DEFAULT, cluster="present")
    found = on_record(decide(a_case(setting=setting, raised=replace(SEEN, cluster="former")), POLICY))
    assert found is not None
    assert (found.cluster, found.state, found.to) == ("present", RaiseState.WANTED, 1)


def test_a_dry_run_keeps_the_record_of_another_kafka_cluster() -> None:
    there = replace(SEEN, cluster="former")
    setting = StandbySetting(1, is_set=True, cluster="present")
    decision = decide(a_case(setting=setting, raised=there, is_held=False, app={"dry_run": True}), POLICY)
    assert on_record(decision) == there


def test_a_default_that_another_hand_sets_explicitly_is_not_overwritten() -> None:
    during = decide(a_case(BARE, StandbySetting(0, is_set=True), RAISED), POLICY)
    assert (written(during), on_record(during)) == ([], replace(FOREIGN, before=0, at=READ_AT))


@pytest.mark.guarantee(2)
def test_a_raise_of_replicas_dates_the_record_anew() -> None:
    """It can be the first write of an operator that takes over, whose clock is ahead of the former one's."""
    case = a_case(SPREAD, StandbySetting(1, is_set=True), SEEN, desired=5)
    raised = decide_raise(case.app, case.workload.statefulset, 0, example.NOW)
    assert raised is not None
    assert isinstance(raised.record, HoldRecord)
    assert raised.record.standbys == replace(SEEN, at=example.NOW)


def in_a_classic_group(setting: StandbySetting | StandbySettingUnread | None, *, is_held: bool) -> Snapshot:
    """The group has changed its protocol while standbys were raised; a hold goes on, or none does."""
    readings = tuple(
        replace(one, group=replace(description(one), unused_standbys=setting))
        for one in example.two_readings(example.members(3))
    )
    return replace(a_case(raised=SEEN, is_held=is_held), readings=readings)


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("is_held", [True, False])
def test_a_group_that_is_classic_now_needs_no_standbys(is_held: bool) -> None:
    shown = decide(in_a_classic_group(StandbySetting(1, is_set=True), is_held=is_held), POLICY)
    assert written(shown) == [None]
    back = decide(in_a_classic_group(DEFAULT, is_held=is_held), POLICY)
    assert (written(back), on_record(back)) == ([], None)


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(
    ("setting", "is_looked_at_often"), [(None, True), (StandbySettingUnread("no right"), False)], ids=["empty", "right"]
)
def test_what_is_not_known_of_a_classic_group_keeps_the_record(
    setting: StandbySettingUnread | None, is_looked_at_often: bool
) -> None:
    decision = decide(in_a_classic_group(setting, is_held=False), POLICY)
    assert (written(decision), on_record(decision)) == ([], SEEN)
    assert decision.needs_fresh_group == is_looked_at_often
