"""The hold record: its clock, its epoch, its text."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given

from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.hold_annotation import LIMIT_BYTES, decode, encode, encode_generation, fits, with_generation
from streamapp.core.facts.hold_record import (
    LEFT_OVER,
    NO_EPOCH,
    Epoch,
    Forced,
    ForcedBy,
    HoldRecord,
    Progress,
    RaisedStandbys,
    RaiseState,
    RecordUnreadable,
    new_hold_id,
)
from streamapp.core.reasons import Reason
from tests.builders import NOW, a_capture, a_hold, a_record, a_step, ago, seconds
from tests.strategies import hold_records

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("before", "records_to_go", "after"),
    [
        pytest.param(
            Progress(improved_at=ago(60)),
            500,
            Progress(best=500, improved_at=NOW, counted_at=NOW),
            id="the wait begins with the first pass that judges",
        ),
        pytest.param(
            Progress(improved_at=ago(60)),
            None,
            Progress(improved_at=ago(60), counted_at=NOW),
            id="also with one that cannot see everything",
        ),
        pytest.param(
            Progress(best=500, improved_at=ago(60), counted_at=ago(90)),
            400,
            Progress(best=400, improved_at=NOW, counted_at=ago(90)),
            id="a gain is dated and moves no deadline",
        ),
        pytest.param(
            Progress(best=500, improved_at=ago(60), counted_at=ago(90)),
            496,
            Progress(best=500, improved_at=ago(60), counted_at=ago(90)),
            id="a gain of less than one in a hundred is noise",
        ),
        pytest.param(
            Progress(best=500, improved_at=ago(60), counted_at=ago(90)),
            900,
            Progress(best=500, improved_at=ago(60), counted_at=ago(90)),
            id="a loss is no gain",
        ),
        pytest.param(
            Progress(best=500, improved_at=ago(60), counted_at=ago(9000)),
            None,
            Progress(best=500, improved_at=ago(60), counted_at=ago(9000)),
            id="a pass that cannot see everything stops nothing",
        ),
        pytest.param(
            Progress(best=0, improved_at=ago(60), counted_at=ago(90)),
            0,
            Progress(best=0, improved_at=ago(60), counted_at=ago(90)),
            id="nothing in the way is no gain twice",
        ),
        pytest.param(
            Progress(best=500, improved_at=ago(60), waited=seconds(50)),
            None,
            Progress(best=500, improved_at=ago(60), waited=seconds(50), counted_at=NOW),
            id="what an earlier version counted is kept",
        ),
    ],
)
def test_the_wait_for_the_next_pod(before: Progress, records_to_go: int | None, after: Progress) -> None:
    assert before.after(records_to_go, NOW) == after


def test_the_wait_is_that_of_the_clock_and_never_less_than_nothing() -> None:
    waits = [
        Progress(improved_at=ago(60)),
        Progress(improved_at=ago(60), counted_at=ago(90)),
        Progress(improved_at=ago(60), waited=seconds(50), counted_at=ago(9000)),
        Progress(improved_at=ago(60), waited=seconds(50)),
        Progress(improved_at=ago(60), counted_at=NOW + seconds(5)),
    ]
    assert [one.waited_by(NOW).total_seconds() for one in waits] == [0, 90, 9050, 50, 0]


def test_a_wait_that_is_broken_off_begins_anew() -> None:
    running = Progress(best=500, improved_at=ago(60), waited=seconds(50), counted_at=ago(10))
    fresh = running.before_next_wait(NOW)
    assert (fresh, fresh.before_next_wait(NOW + seconds(5))) == (Progress(improved_at=NOW), fresh)


def test_epochs_rise_with_every_write_and_with_the_clock() -> None:
    now = int(NOW.timestamp())
    assert [
        NO_EPOCH.next(0, NOW),
        Epoch(0, now).next(0, NOW),
        Epoch(0, now + 5).next(0, NOW),
        Epoch(3, now).next(4, NOW),
    ] == [Epoch(0, now), Epoch(0, now + 1), Epoch(0, now + 6), Epoch(4, now + 1)]


def test_the_lease_counts_more_than_the_counter() -> None:
    assert Epoch(1, 5) < Epoch(2, 1)


def test_each_hold_has_an_id_of_its_own() -> None:
    ids = {
        new_hold_id("uid", "100", NOW),
        new_hold_id("uid", "101", NOW),
        new_hold_id("uid", "100", NOW + seconds(1)),
        new_hold_id("other", "100", NOW),
    }
    assert len(ids) == 4


def test_how_far_the_copies_are_is_no_news() -> None:
    ran_on = a_hold(progress=Progress(best=5, improved_at=ago(9), counted_at=ago(70)))
    before = a_hold(progress=Progress(best=7, improved_at=ago(60), counted_at=ago(70)))
    records = [HoldRecord(epoch=Epoch(0, number), hold=hold) for number, hold in enumerate((before, ran_on))]
    assert records[0].without_clock == records[1].without_clock


@pytest.mark.parametrize(
    "other",
    [
        HoldRecord(epoch=Epoch(1, 1), hold=a_hold()),
        HoldRecord(epoch=Epoch(0, 1), hold=a_hold(reason=Reason.LagUnknown)),
        HoldRecord(epoch=Epoch(0, 1), hold=a_hold(target=1)),
        HoldRecord(epoch=Epoch(0, 1), hold=a_hold(progress=Progress(improved_at=ago(60), counted_at=NOW))),
        HoldRecord(epoch=Epoch(0, 1), hold=a_hold(), step=a_step()),
        HoldRecord(epoch=Epoch(0, 1)),
    ],
    ids=["another leader", "another reason", "another target", "the clock started", "a step", "no hold"],
)
def test_everything_else_is_news(other: HoldRecord) -> None:
    assert other.without_clock != a_record().without_clock


@given(hold_records())
def test_what_is_written_is_what_is_read(record: HoldRecord) -> None:
    assert decode(encode(record)) == record


@pytest.mark.parametrize(
    ("text", "generation"),
    [
        pytest.param("h-1 7", 7, id="of this hold"),
        pytest.param("h-2 7", None, id="of another hold"),
        pytest.param(None, None, id="an earlier version wrote none"),
        pytest.param("7", None, id="of no hold"),
        pytest.param("h-1 -7", None, id="no generation"),
        pytest.param("h-1 " + "7" * 20, None, id="a number of great length"),
    ],
)
def test_the_generation_stands_beside_the_record(text: str | None, generation: int | None) -> None:
    record = a_record(generation=7)
    assert encode(record) == encode(a_record(generation=None))  # an earlier version reads no record that says more
    assert encode_generation(record) == "h-1 7"
    assert with_generation(decode(encode(record)), text) == a_record(generation=generation)


def test_without_a_hold_there_is_no_generation() -> None:
    unreadable = decode("{")
    assert encode_generation(HoldRecord(epoch=NO_EPOCH)) is None
    assert with_generation(HoldRecord(epoch=NO_EPOCH), "h-1 7") == HoldRecord(epoch=NO_EPOCH)
    assert with_generation(unreadable, "h-1 7") == unreadable


@pytest.mark.parametrize(
    ("on_record", "is_continued"),
    [
        pytest.param(7, True, id="nothing was changed"),
        pytest.param(6, False, id="the StreamApp was changed"),
        pytest.param(None, True, id="an earlier version did not say"),
    ],
)
def test_a_process_continues_no_hold_of_a_streamapp_that_changed_unseen(
    on_record: int | None, *, is_continued: bool
) -> None:
    record = a_record(generation=on_record, step=a_step())
    changed = a_record(generation=on_record, step=a_step(), granted=LEFT_OVER)
    assert record.found_at(7) == (record if is_continued else changed)


@pytest.mark.parametrize(
    ("on_record", "is_continued"),
    [
        pytest.param(8, True, id="this pass reads an older version than the last one"),
        pytest.param(7, True, id="nothing was changed"),
        pytest.param(6, True, id="this pass is the first that reads the change"),
        pytest.param(5, False, id="a change was missed"),
        pytest.param(None, True, id="an earlier version did not say"),
    ],
)
def test_a_process_that_looks_on_continues_no_hold_in_which_it_missed_a_change(
    on_record: int | None, *, is_continued: bool
) -> None:
    record = a_record(generation=on_record, step=a_step())
    changed = a_record(generation=on_record, step=a_step(), granted=LEFT_OVER)
    assert record.followed_to(7) == (record if is_continued else changed)


def test_the_text_can_be_read_by_a_person() -> None:
    record = a_record(
        step=a_step(observed=(a_capture(members=(MemberKey("m-1"), MemberKey("m-2", "static"))),)),
        forced=Forced(ForcedBy.OVERRIDE, "out of money"),
    )
    assert json.loads(encode(record)) == {
        "version": 1,
        "epoch": [0, 1],
        "hold": {
            "id": "h-1",
            "from": 3,
            "target": 2,
            "granted": 3,
            "since": "2026-11-21T11:59:00+00:00",
            "reason": "ReadingsPending",
            "progress": {"lastProgress": "2026-11-21T11:59:00+00:00", "waited": 0.0},
            "forced": {"by": "override", "why": "out of money"},
        },
        "step": {
            "holdId": "h-1",
            "from": 4,
            "to": 3,
            "grantedAt": "2026-11-21T11:59:30+00:00",
            "reason": "Covered",
            "captures": [
                {
                    "ordinal": 3,
                    "pod": "pod-3",
                    "container": "containerd://3",
                    "seenAt": "2026-11-21T11:59:00+00:00",
                    "members": [["m-1"], ["m-2", "static"]],
                }
            ],
        },
    }


def _edited(**changes: Any) -> str:
    return json.dumps({**json.loads(encode(a_record())), **changes}, separators=(",", ":"), sort_keys=True)


def _with_hold(**changes: Any) -> str:
    hold = {**json.loads(encode(a_record()))["hold"], **changes}
    return _edited(hold=hold)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "null",
        "[]",
        '{"version":1}',
        encode(a_record())[:-1],
        _edited(version=2),
        _edited(extra=True),
        _edited(epoch=[0]),
        _edited(step=None),
        _with_hold(reason="Whatever"),
        _with_hold(since="yesterday"),
        _with_hold(since="2026-11-21T11:59:00"),
        _with_hold(granted="3"),
        _with_hold(granted=3.5),
        _with_hold(gaveUpAt=None),
        _with_hold(progress={"lastProgress": "2026-11-21T11:59:00+00:00", "waited": 1e300}),
        encode(a_record()) + " ",
    ],
)
def test_whatever_this_version_could_not_have_written_is_unreadable(text: str) -> None:
    assert isinstance(decode(text), RecordUnreadable)


@pytest.mark.guarantee(3)
def test_a_text_of_great_depth_or_with_a_number_of_great_length_is_unreadable() -> None:
    longest = encode(HoldRecord(epoch=Epoch(lease=1, counter=10**18)))
    assert isinstance(decode(longest), HoldRecord)
    for text in ("[" * 100_000, longest.replace(str(10**18), "9" * 4300)):
        assert isinstance(decode(text), RecordUnreadable)


def test_a_time_of_another_zone_is_the_same_time() -> None:
    moscow = timezone(timedelta(hours=3))
    since = datetime(2026, 11, 21, 15, 0, tzinfo=moscow)
    record = HoldRecord(epoch=Epoch(0, 1), hold=a_hold(since=since))
    read = with_generation(decode(encode(record)), encode_generation(record))
    assert read == HoldRecord(epoch=Epoch(0, 1), hold=a_hold(since=since.astimezone(UTC)))


def test_a_record_of_more_than_64_kib_does_not_fit() -> None:
    def of(threads: int) -> HoldRecord:
        members = tuple(MemberKey(f"wordcount-3-StreamThread-{number}-consumer") for number in range(threads))
        return a_record(step=a_step(observed=(a_capture(members=members),)))

    size = len(encode(of(1000)).encode())
    largest = 1000 + (LIMIT_BYTES - size) // len('["wordcount-3-StreamThread-1000-consumer"],')
    assert (fits(of(largest)), fits(of(largest + 1))) == (True, False)


def test_dates_of_a_clock_that_was_ahead_end_at_ours() -> None:
    ahead, before = NOW + seconds(3600), ago(60)
    progress = Progress(best=5, improved_at=ahead, counted_at=ahead)
    record = a_record(since=ahead, progress=progress, step=replace(a_step(), granted_at=ahead))
    ours = record.dated_until(NOW)
    assert ours.hold is not None
    assert ours.step is not None
    assert {ours.hold.since, ours.hold.progress.improved_at, ours.hold.progress.counted_at, ours.step.granted_at} == {
        NOW
    }
    older = a_record(since=before, progress=Progress(improved_at=before), step=replace(a_step(), granted_at=before))
    assert older.dated_until(NOW) == older


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("at", [-60.0, 60.0], ids=["its clock is behind", "its clock is ahead"])
def test_a_raise_of_another_process_counts_from_now(at: float) -> None:
    """What that process sent can arrive for a while from now on, whatever its clock says."""
    raised = RaisedStandbys(before=None, instead_of=0, to=1, at=NOW + seconds(at))
    for state in RaiseState:
        ours = replace(a_record(since=ago(90)), standbys=replace(raised, state=state)).dated_until(NOW)
        assert ours.standbys == replace(raised, state=state, at=NOW)


@pytest.mark.parametrize(("since", "at"), [(-10.0, -60.0), (60.0, 30.0)], ids=["by dates past", "by dates ahead"])
def test_what_another_hand_set_before_this_hold_stays_older_than_the_hold(since: float, at: float) -> None:
    """Else the hold could never raise anew."""
    raised = RaisedStandbys(before=2, instead_of=0, to=1, at=NOW + seconds(at), state=RaiseState.FOREIGN)
    ours = replace(a_record(since=NOW + seconds(since)), standbys=raised).dated_until(NOW)
    assert ours.hold is not None
    assert ours.standbys is not None
    assert ours.standbys.at < ours.hold.since <= NOW
