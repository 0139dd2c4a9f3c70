"""The hold record: its clock, its epoch, its text."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given

from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.hold_annotation import LIMIT_BYTES, decode, encode, fits
from streamapp.core.facts.hold_record import (
    NO_EPOCH,
    Epoch,
    Forced,
    ForcedBy,
    HoldRecord,
    Progress,
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
            id="the first measure is the best so far",
        ),
        pytest.param(
            Progress(best=500, improved_at=ago(60), waited=seconds(50), counted_at=ago(10)),
            400,
            Progress(best=400, improved_at=NOW, counted_at=NOW),
            id="a gain starts the clock anew",
        ),
        pytest.param(
            Progress(best=500, improved_at=ago(60), waited=seconds(50), counted_at=ago(10)),
            496,
            Progress(best=500, improved_at=ago(60), waited=seconds(60), counted_at=NOW),
            id="a gain of less than one in a hundred is noise",
        ),
        pytest.param(
            Progress(best=500, improved_at=ago(60), waited=seconds(50), counted_at=ago(10)),
            900,
            Progress(best=500, improved_at=ago(60), waited=seconds(60), counted_at=NOW),
            id="a loss runs the clock on",
        ),
        pytest.param(
            Progress(best=500, improved_at=ago(60), waited=seconds(50), counted_at=ago(10)),
            None,
            Progress(best=500, improved_at=ago(60), waited=seconds(50)),
            id="a pass that cannot see everything stops it",
        ),
        pytest.param(
            Progress(best=500, improved_at=ago(60), waited=seconds(50)),
            500,
            Progress(best=500, improved_at=ago(60), waited=seconds(50), counted_at=NOW),
            id="and the next one that can starts it without the pause",
        ),
        pytest.param(
            Progress(best=500, improved_at=ago(600), waited=seconds(50), counted_at=ago(61)),
            500,
            Progress(best=500, improved_at=ago(600), waited=seconds(50), counted_at=NOW),
            id="time in which no operator looked does not count",
        ),
        pytest.param(
            Progress(best=0, improved_at=ago(60), waited=seconds(50), counted_at=ago(10)),
            0,
            Progress(best=0, improved_at=ago(60), waited=seconds(60), counted_at=NOW),
            id="nothing in the way is no gain twice",
        ),
        pytest.param(
            Progress(best=500, improved_at=ago(60), waited=seconds(50), counted_at=NOW + seconds(5)),
            500,
            Progress(best=500, improved_at=ago(60), waited=seconds(50), counted_at=NOW),
            id="a clock that was set back counts nothing",
        ),
    ],
)
def test_the_clock_of_no_progress(before: Progress, records_to_go: int | None, after: Progress) -> None:
    assert before.after(records_to_go, NOW, MINUTE) == after


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


def test_the_clock_alone_is_no_news() -> None:
    ran_on = a_hold(progress=Progress(best=5, improved_at=ago(9), waited=MINUTE, counted_at=NOW))
    before = a_hold(progress=Progress(best=7, improved_at=ago(60), counted_at=ago(10)))
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


def test_a_time_of_another_zone_is_the_same_time() -> None:
    moscow = timezone(timedelta(hours=3))
    since = datetime(2026, 11, 21, 15, 0, tzinfo=moscow)
    record = HoldRecord(epoch=Epoch(0, 1), hold=a_hold(since=since))
    assert decode(encode(record)) == HoldRecord(epoch=Epoch(0, 1), hold=a_hold(since=since.astimezone(UTC)))


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
