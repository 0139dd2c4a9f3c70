"""What stands out on the page and what is marked: incidents, crashes, rollouts, images, applications unlike others."""

from datetime import UTC, datetime
from typing import Any

import pytest

from streamapp.analytics.report.facts import ReportedApp, applications
from streamapp.analytics.report.outliers import excesses, ranked
from streamapp.analytics.report.rows import by_app
from streamapp.analytics.report.tables import Tables
from streamapp.analytics.report.timeline.events import incidents, marks
from streamapp.api.report_link import fragment, moment
from tests.analytics.support.app_tables import SCHEMAS, at, rows_of


def state(ordinal: int, since: float, until: float, **names: str) -> dict[str, Any]:
    known = {"pod_uid": "u", "container_id": "c", "revision": "r", **names}
    return {"ordinal": ordinal, "t_start": at(since), "t_end": at(until), **known}


def test_changes_of_pods_and_images_are_marks_and_a_rollout_is_one() -> None:
    pods = [
        state(0, 0, 100),
        state(0, 100, 200, container_id="d"),
        state(0, 200, 900, container_id="e", pod_uid="v", revision="s"),
        state(1, 0, 500),
        state(1, 500, 600, container_id="f", pod_uid="w", revision="s"),
        state(1, 600, 700, container_id="g", pod_uid="x", revision="s"),
        state(2, 0, 100),
        # A pod that was away in between is a new one of a scale-up, and no change; but for a short time.
        state(3, 0, 100),
        {**state(3, 100, 5000), "is_gone": True},
        state(3, 5000, 5100, pod_uid="q", container_id="q"),
        {**state(2, 100, 105), "is_gone": True},
        state(2, 105, 1000, pod_uid="z", container_id="i"),
    ]
    images = [{"valid_from": at(n * 100), "image": image} for n, image in enumerate(("", "a:1", "a:1", "a:2"))]
    found = marks(rows_of({"s_pod_interval": pods, "s_config": images}, 1))
    assert [(one.at, one.until, one.text) for one in found] == [
        (at(100), at(100), "crash: pod 0"),
        (at(105), at(600), "pod replaced: pods 1, 2"),
        (at(200), at(500), "rollout: pods 0, 1"),
        (at(300), at(300), "image a:2"),
    ]


def outage(task: str, since: float, until: float, cause: str = "crash", *, is_open: bool = False) -> dict[str, Any]:
    lasted = {"at_least_s": 1.0, "at_most_s": until - since, "cause": cause, "is_open": is_open}
    return {"task": task, "t_stop": at(since), "t_end": at(until), **lasted}


def test_a_crash_is_marked_where_the_container_ended_with_how_it_did() -> None:
    pod = {"ordinal": 1, "pod_uid": "u", "revision": "r", "volume": "v", "is_gone": False}
    ended = {"ended_at": at(90), "end_reason": "OOMKilled", "exit_code": 137}
    states = [
        {**pod, "container_id": "a", "t_start": at(0), "t_end": at(100)},
        {**pod, "container_id": "b", "t_start": at(100), "t_end": at(480), **ended},
    ]
    (mark,) = marks(rows_of({"s_pod_interval": states}, 1))
    assert (mark.at, mark.until, mark.text) == (at(90), at(100), "crash: pod 1 (OOMKilled, exit code 137)")
    unknown = [states[0], {**states[1], "ended_at": None, "end_reason": None, "exit_code": None}]
    (mark,) = marks(rows_of({"s_pod_interval": unknown}, 1))
    assert (mark.at, mark.text) == (at(100), "crash: pod 1")


def test_times_that_nearly_meet_are_one_incident_and_an_open_one_is_first() -> None:
    rows = [
        outage("0_0", 0, 100, is_open=True),
        outage("0_1", 50, 60, "scale"),
        outage("0_2", 160, 170),
        outage("0_0", 231, 240, "scale"),
    ]
    first, second = incidents(rows)
    assert (first.is_open, first.since, first.until) == (True, at(0), at(170))
    assert (sorted(first.tasks), first.at_least_s, first.at_most_s) == (["0_0", "0_1", "0_2"], 3, 120)
    assert (first.cause, second.cause, second.is_open) == ("crash", "scale", False)


def apps(*held: float) -> list[ReportedApp]:
    key = {"cluster": "c", "namespace": "n"}
    seen = [{**key, "app": f"a{n}", "uid": "u", "t_first": at(0), "t_last": at(9), "dt": "d"} for n in range(len(held))]
    blame = [
        {**key, "app": f"a{n}", "uid": "u", "reason": "r", "blame_s": seconds, "dt": "d"}
        for n, seconds in enumerate(held)
    ]
    tables = {table: by_app(rows_of({}, 0).tables[table]) for table in SCHEMAS}
    of_hand = rows_of({"s_seen": seen, "g_hold_blame": blame}, 0).tables
    return applications(
        Tables(
            rows={**tables, "s_seen": by_app(of_hand["s_seen"]), "g_hold_blame": by_app(of_hand["g_hold_blame"])},
            days=("d",),
        )
    )


def test_an_application_far_above_its_siblings_stands_out_and_comes_first() -> None:
    found = excesses(apps(100, 110, 120, 600))
    ((name, out),) = [(key[2], of_app["held"]) for key, of_app in found.items() if of_app]
    assert (name, out.usual_s) == ("a3", 110)
    assert out.times == pytest.approx(600 / 110)
    assert next(app.name for app in ranked(apps(600, 5000, 100, 110, 120))) == "a1"
    # Below the least usual seconds nothing stands out, and among three nothing is usual.
    assert not any(excesses(apps(1, 1, 1, 100)).values())
    assert not any(excesses(apps(100, 110, 600)).values())


def test_a_time_of_day_is_the_newest_before_the_end_of_the_record() -> None:
    end = datetime(2026, 11, 21, 1, 30, tzinfo=UTC)
    assert moment("02:00", end) == datetime(2026, 11, 20, 2, tzinfo=UTC)
    assert moment("01:00", end) == datetime(2026, 11, 21, 1, tzinfo=UTC)
    assert moment("2026-11-19T02:00", end) == datetime(2026, 11, 19, 2, tzinfo=UTC)
    assert moment("2026-11-19T02:00+02:00", end) == datetime(2026, 11, 19, 0, tzinfo=UTC)
    with pytest.raises(ValueError, match="soon"):
        moment("soon", end)
    assert fragment("shop/orders", end) == "#shop/orders?since=2026-11-21T01:30:00Z"
    assert fragment("shop/orders") == "#shop/orders"
