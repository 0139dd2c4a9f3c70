import re
from datetime import timedelta

import pytest

from streamapp.core.facts.topic_configs import TopicConfig
from streamapp.core.reasons import Reason
from tests.builders import a_pod, a_snapshot, an_unreadable
from tests.cli.showing import Json, a_resource, a_step, one_line, screen
from tests.cli.states import every_cell
from tests.statuses import answer, held_status
from tests.streamapps import ABSENT
from tests.support import example

HELD = {"spec.replicas": 2}
IN_200_SECONDS = {"estimatedCompletionTime": "2026-11-21T12:03:20Z", "lagFalling": True}


def lines_of(text: str, *starts: str) -> list[str]:
    """The lines that begin so, without their beginning."""
    found = [line for start in starts for line in text.splitlines() if line.startswith(start)]
    return [" ".join(line.split()) for line in found]


def a_long_hold(**convergence: object) -> Json:
    """Of nine tasks, with an ETA."""
    status = held_status()
    moving = {
        "progress": 62,
        "tasks": 48,
        "running": 47,
        "learners": 24,
        "caughtUp": 15,
        "remainingLag": 1_840_211,
        "estimatedCompletionTime": "2026-11-21T12:03:20Z",
        "slowest": [
            {"task": "0_31", "ordinal": 2, "lag": 220_000},
            {"task": "0_12", "ordinal": 1, "lag": 110_000},
            {"task": "0_13", "ordinal": 0},
            {"task": "0_14"},
        ],
        **convergence,
    }
    status["convergence"] |= moving
    status["scaleDown"] |= {
        "estimatedCompletionTime": "2026-11-21T12:02:00Z",
        "target": 1,
        "waitingFor": 9,
        "lastProgress": "2026-11-21T11:59:48Z",
    }
    return status


def test_a_held_scale_down_says_why_for_how_long_and_what_comes_next() -> None:
    text = screen(a_resource(a_long_hold(), {"spec.replicas": 1}), later=30)
    assert one_line(text).startswith(
        "demo/wordcount HELD LearnersCatchingUp Copies on the remaining pods are still behind. 2 tasks wait; 0_5 on "
        "ordinal 0 is 50000 records behind. desired 1 current 3 actual 3 ready 3 age 1d application wordcount group "
        "classic copies standbys scale-down 3 to 1, pod 2 leaves next held for 1m30s, since 2026-11-21 11:59:00 UTC, "
        "hold h-1 waits for 9 tasks without a caught-up copy on a remaining pod time left about 1m30s progress the lag "
        "last decreased 42s ago"
    )


def test_convergence_is_told_in_figures_and_bars() -> None:
    text = screen(a_resource(a_long_hold()))
    assert lines_of(text, "convergence", "tasks", "copies", "lag") == [
        "convergence Converging ━━━━━━━━━━────── 62 % time left: about 3m20s",
        "tasks 47 of 48 running",
        "copies 15 of 24 caught up",
        "lag 1,840,211 records remaining",
    ]


def test_the_slowest_tasks_have_bars_as_long_as_their_lag() -> None:
    text = screen(a_resource(a_long_hold()))
    assert lines_of(text, "slowest", " " * 13 + "0_1") == [
        "slowest 0_31 on pod 2 220,000 " + "━" * 30,
        "0_12 on pod 1 110,000 " + "━" * 15 + "─" * 15,
        "0_13 on pod 0 lag unknown",
        "0_14 no copy",
    ]


def test_a_pod_is_shown_with_its_process_its_tasks_and_what_becomes_of_it() -> None:
    text = screen(a_resource(a_long_hold(), {"spec.replicas": 1}))
    assert lines_of(text, "  0 ", "  1 ", "  2 ") == [
        "0 00000000 state-wordcount-0 2 2 stays",
        "1 00000001 state-wordcount-1 2 2 leaves",
        "2 00000002 state-wordcount-2 2 2 leaves next",
    ]


def test_why_pods_do_not_run_is_told_below_them_three_in_full() -> None:
    status = held_status()
    member = status["members"][0]
    status["members"] = [{**member, "ordinal": number, "fault": f"pod {number} fails"} for number in range(5)]
    text = screen(a_resource(status))
    assert lines_of(text, "pod 0 f", "pod 2 f", "pod 3 f", "and 2") == [
        "pod 0 fails",
        "pod 2 fails",
        "and 2 more pods with a fault",
    ]


def test_where_there_is_room_a_process_id_is_whole() -> None:
    whole = str(example.process_id(1))
    assert whole in screen(a_resource(held_status()), 140)
    assert whole not in screen(a_resource(held_status()), 80)


def test_a_pod_whose_removal_was_granted_is_going() -> None:
    pods = (a_pod(0), a_pod(1), a_pod(2, terminating=True))
    status = answer(a_snapshot(statefulset={"replicas": 2}, record=None, workload={"pods": pods}))
    assert lines_of(screen(a_resource(status, HELD)), "  2 ") == ["2 00000002 state-wordcount-2 2 2 leaving"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"heldDuration": "4m10s", "downtimeMax": "640ms", "downtimeUncertainty": "500ms"},
            "4 to 3 10m ago 4m10s 12s 140ms to 640ms",
        ),
        ({"downtimeMax": "15s", "downtimeUncertainty": "0s"}, "4 to 3 10m ago unknown 12s 15s"),
        ({"downtimeMax": "1s500ms", "downtimeUncertainty": "2s"}, "4 to 3 10m ago unknown 12s 0s to 1.5s"),
        ({"heldDuration": "0s"}, "4 to 3 10m ago 0s 12s unknown"),
        (
            {"forced": {"by": "Policy", "reason": "a night off"}},
            "4 to 3 10m ago unknown 12s unknown overridden by Policy: a night off",
        ),
    ],
)
def test_a_finished_step_says_how_long_users_waited_as_far_as_it_was_seen(fields: Json, told: str) -> None:
    status = held_status() | {"lastSteps": [a_step(**fields)]}
    assert lines_of(screen(a_resource(status)), "4 to 3") == [told]


def test_what_overrides_coverage_is_named() -> None:
    status = held_status()
    status["scaleDown"]["forced"] = {"by": "Override", "reason": "INC-7"}
    assert "overridden   Override: INC-7" in screen(a_resource(status))


def test_a_sound_application_asks_for_nothing() -> None:
    text = screen(a_resource(answer(a_snapshot(desired=3, record=None))))
    assert "SETTLED  Converged" in text
    assert "━" * 16 in text
    assert "condition" not in text
    assert "scale-down" not in text


def test_a_warning_is_shown_with_its_particulars_although_its_condition_is_true() -> None:
    config = TopicConfig(frozenset({"compact"}), None, timedelta(hours=1))
    warned = a_snapshot(
        desired=3, record=None, app={"max_idle_time": timedelta(hours=20)}, topic_configs={"counts-changelog": config}
    )
    (line,) = lines_of(screen(a_resource(answer(warned))), "ProcessIdentityStable")
    assert line.startswith("ProcessIdentityStable True")
    assert "MaxIdleTimeTooLong: " in line
    assert "topic counts-changelog: delete.retention.ms is 3600000" in one_line(screen(a_resource(answer(warned))))


def test_a_reason_that_several_conditions_share_is_explained_once() -> None:
    text = screen(a_resource(answer(a_snapshot(desired=3, record=None, readings=(an_unreadable(),)))))
    assert one_line(text).count(Reason.BrokersUnreachable.note) == 1
    for condition in ("ProcessIdentityStable", "KafkaReachable", "LearnersAvailable"):
        assert condition in text


def test_what_is_not_known_is_never_a_number() -> None:
    text = screen(a_resource(answer(a_snapshot(readings=(an_unreadable(),))), HELD))
    assert lines_of(text, "lag", "  0 ") == ["lag unknown", "0 00000000 state-wordcount-0 ? ? stays"]
    assert "%" not in text


@pytest.mark.parametrize(
    ("estimate", "later", "text"),
    [
        (IN_200_SECONDS, 0, "about 3m20s"),
        (IN_200_SECONDS, 30, "about 2m50s"),
        (IN_200_SECONDS, 500, "any moment"),
        (IN_200_SECONDS, -500, "about 3m20s"),
        ({"lagFalling": False}, 30, "never at this rate"),
        ({}, 30, "unknown"),
    ],
)
def test_the_time_left_runs_down_to_the_estimated_completion(estimate: Json, later: float, text: str) -> None:
    status = a_long_hold()
    for field in ("estimatedCompletionTime", "lagFalling"):
        status["convergence"].pop(field, None)
    status["convergence"] |= estimate
    (line,) = lines_of(screen(a_resource(status), later=later), "convergence")
    assert line.endswith(f"time left: {text}")


@pytest.mark.parametrize(
    ("source", "words"),
    [("Live", "about 2m, in 9 of"), ("Learned", "about 2m by restore rates of earlier days, in 9 of")],
)
def test_the_time_left_of_a_scale_down_names_its_source_and_its_range(source: str, words: str) -> None:
    status = a_long_hold()
    status["scaleDown"] |= {
        "earliestCompletionTime": "2026-11-21T12:01:00Z",
        "latestCompletionTime": "2026-11-21T12:04:00Z",
        "estimateSource": source,
    }
    text = one_line(screen(a_resource(status, {"spec.replicas": 1})))
    assert f"time left {words} 10 cases between 2026-11-21 12:01:00 UTC and 2026-11-21 12:04:00 UTC" in text


DOUBTFUL = {
    "never answered": (
        a_resource(None),
        "UNANSWERED The operator has never answered: the StreamApp has no status. Check that the operator runs",
    ),
    "new": (
        a_resource(None, asked_ago=5),
        "UNANSWERED The operator has not answered yet. Check again in a few seconds.",
    ),
    "an older spec": (
        a_resource(held_status(), generation=7),
        "UNANSWERED The status is older than the spec: the status is for generation 1, and the spec "
        "has generation 7. Check that",
    ),
    "just changed": (
        a_resource(held_status(), generation=2, asked_ago=1),
        "the status is for generation 1, and the spec has generation 2. Check again in a few seconds.",
    ),
    "stale": (
        a_resource(held_status(), told_ago=1500),
        "HELD LearnersCatchingUp The status may be stale: a change is in progress, and the last write was 25 min ago.",
    ),
}


@pytest.mark.parametrize(("resource", "told"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_a_status_that_may_not_be_how_things_are_says_so_first(resource: Json, told: str) -> None:
    assert told in one_line(screen(resource))


def test_a_status_that_has_long_been_the_same_is_in_no_doubt_where_nothing_goes_on() -> None:
    status = answer(a_snapshot(desired=3, record=None))
    assert "stale" not in screen(a_resource(status, told_ago=86_400))


def test_a_dry_run_says_that_nothing_is_done() -> None:
    text = screen(a_resource(held_status(), {"spec.dryRun": True, **HELD}))
    assert "This is a dry run" in text


def test_a_spec_that_is_wrong_is_told_even_where_no_operator_runs() -> None:
    assert "invalid: spec.kafka is required" in screen(a_resource(None, {"spec.kafka": ABSENT}))


def test_deletion_comes_before_all_else() -> None:
    text = screen(a_resource(held_status(), {"metadata.deletionTimestamp": "2026-11-21T12:00:00Z"}))
    assert "DELETING" in text.splitlines()[0]


def test_text_of_others_cannot_steer_the_terminal() -> None:
    status = held_status()
    status["scaleDown"]["forced"] = {"by": "Policy", "reason": "quiet\x1b]0;owned\x07\x1b[2J\nline [red]two[/]"}
    text = screen(a_resource(status))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "line [red]two[/]" in one_line(text)


@pytest.mark.parametrize("width", [60, *(pytest.param(width, marks=pytest.mark.slow) for width in (80, 140))])
def test_every_cell_of_the_state_table_is_shown_with_its_reasons_within_the_width(width: int) -> None:
    sound = {"Ready": "True", "Stalled": "False", "Converged": "True", "KafkaReachable": "True"}
    for resource in every_cell():
        text = screen(resource, width)
        assert max(map(len, text.splitlines())) <= width
        for condition in resource["status"]["conditions"]:
            if condition["status"] != sound.get(condition["type"], condition["status"]):
                # A long name in the last column folds onto the next line.
                assert condition["reason"] in re.sub(r"\s*\n {20,}", "", text)


def test_two_hundred_pods_of_two_hundred_and_fifty() -> None:
    status = held_status()
    status |= {"statefulSetReplicas": 250, "replicas": 250, "readyReplicas": 250}
    status["scaleDown"] |= {"target": 195, "nextOrdinal": 249}
    status["members"] = [
        {"ordinal": number, "processId": str(example.process_id(number)), "active": 8, "learners": 4}
        for number in range(200)
    ]
    text = screen(a_resource(status))
    assert len(text.splitlines()) < 235
    assert lines_of(text, "199", "the status") == [
        "199 000000c7 none 8 4 leaves",
        "the status does not list 50 more pods",
    ]
    short = screen(a_resource(status), most_pods=6)
    assert lines_of(short, "  0", "  1", "195", "199", "and ") == [
        "0 00000000 none 8 4 stays",
        "195 000000c3 none 8 4 leaves",
        "199 000000c7 none 8 4 leaves",
        "and 194 more pods: 1,552 active, 776 copies",
    ]


def test_long_names_are_cut_before_figures_are() -> None:
    status = held_status()
    for member in status["members"]:
        member["volume"] = f"{'s' * 60}-{'w' * 50}-{member['ordinal']}"
    (line,) = lines_of(screen(a_resource(status)), "  2 ")
    assert line.startswith("2 00000002 sss")
    assert line.endswith("… 2 2 leaves next")


def test_an_empty_status_is_a_screen_too() -> None:
    assert "demo/wordcount" in screen(a_resource({}))


def test_the_same_object_and_time_give_the_same_picture() -> None:
    resource = a_resource(held_status())
    assert screen(resource, later=3) == screen(resource, later=3)
    assert screen(resource, later=3) != screen(resource, later=4)


def test_times_in_the_future_are_just_now() -> None:
    assert "held for     0s" in screen(a_resource(held_status()), later=-7200)
