"""`history` without an operator: what happened, from Events alone, in the order of time."""

from functools import partial
from typing import Any

import pytest
import yaml

from tests.builders import a_snapshot
from tests.cli.cluster import Cluster
from tests.cli.conftest import Run
from tests.cli.showing import Json, a_resource, a_step, one_line, zulu
from tests.kube.api_server import ApiServer
from tests.statuses import answer, held_status
from tests.streamapps import UID, changed

SETTLED = answer(a_snapshot(desired=3, record=None))


def an_event(name: str, ago: float, changes: Json | None = None) -> Json:
    whole: Json = {
        "metadata": {"name": name, "namespace": "demo"},
        "eventTime": zulu(ago),
        "reportingController": "streamapp.dev/operator",
        "reason": "ScaledUp",
        "note": f"The note of {name}.",
        "type": "Normal",
        "regarding": {
            "apiVersion": "streamapp.dev/v1alpha1",
            "kind": "StreamApp",
            "namespace": "demo",
            "name": "wordcount",
            "uid": UID,
        },
    }
    return changed(whole, changes or {})


def tell(cluster: Cluster, *events: Json) -> None:
    for event in events:
        cluster.do(partial(ApiServer.put, plural="events", body=event))


def entries(run: Run, *arguments: str) -> list[Json]:
    found: list[Json] = run("history", "wordcount", "-o", "json", *arguments).document["entries"]
    return found


def test_events_stand_in_the_order_of_time_and_nothing_else_does(cluster: Cluster, run: Run) -> None:
    resource = a_resource(held_status(), {"spec.replicas": 2})
    resource["status"]["lastSteps"] = [a_step(heldDuration="4m10s")]
    cluster.put(resource)
    tell(cluster, an_event("late", 100), an_event("early", 2000))
    document = run("history", "wordcount", "-o", "json").document
    assert (document["source"], len(document["notes"])) == ("events", 1)
    assert document["entries"] == [
        {
            "at": at,
            "what": "ScaledUp",
            "message": f"The note of {name}.",
            "by": "operator",
            "warning": False,
            "folded": True,
        }
        for name, at in (("early", "2026-11-21T11:26:40+00:00"), ("late", "2026-11-21T11:58:20+00:00"))
    ]


def test_the_table_has_times_at_every_width(cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.put(a_resource(SETTLED))
    tell(cluster, an_event("it", 90))
    monkeypatch.setenv("COLUMNS", "80")
    narrow = run("history", "wordcount", "--all").out.splitlines()
    assert narrow[0] == "demo/wordcount  from Events"
    assert narrow[1].split() == ["when", "(UTC)", "what"]
    assert narrow[-1].split(maxsplit=3) == ["11-21", "11:58:30", "ScaledUp", "The note of it."]
    monkeypatch.setenv("COLUMNS", "120")
    wide = run("history", "wordcount", "--all").out.splitlines()
    assert one_line(wide[-1]) == "2026-11-21 11:58:30 UTC, 1m30s ago ScaledUp operator The note of it."


def test_since_leaves_out_what_is_older(cluster: Cluster, run: Run) -> None:
    cluster.put(a_resource(SETTLED))
    tell(cluster, an_event("new", 599), an_event("old", 601))
    assert [one["message"] for one in entries(run, "--since", "10m")] == ["The note of new."]
    assert "No entries in this time; use a longer --since" in run("history", "wordcount", "--since", "1s").out
    ran = run("history", "wordcount", "--since", "yesterday")
    assert ran.code == 2
    assert "is not a duration such as 30m" in ran.err


@pytest.mark.parametrize(
    "changes",
    [
        {"regarding.uid": "another"},
        {"regarding.kind": "StatefulSet"},
        {"regarding.apiVersion": "other.dev/v1"},
        {"regarding.name": "other"},
        {"metadata.namespace": "other"},
    ],
)
def test_what_is_about_something_else_is_left_out(cluster: Cluster, run: Run, changes: dict[str, Any]) -> None:
    cluster.put(a_resource(SETTLED))
    tell(cluster, an_event("other", 60, changes))
    assert entries(run) == []


def test_events_of_other_programs_say_whose_they_are_and_how_often(cluster: Cluster, run: Run) -> None:
    cluster.put(a_resource(SETTLED))
    others = {"reportingController": "gitops", "series": {"count": 4, "lastObservedTime": zulu(10)}, "type": "Warning"}
    tell(cluster, an_event("it", 500, others))
    (event,) = entries(run)
    assert (event["by"], event["message"], event["warning"]) == ("gitops", "The note of it. (4 times)", True)
    assert event["at"] == "2026-11-21T11:59:50+00:00"


def test_without_the_right_to_events_that_is_reported(cluster: Cluster, run: Run) -> None:
    cluster.put(a_resource(SETTLED | {"lastSteps": [a_step()]}))
    message = 'User "me" cannot list resource "events"'
    cluster.refuse(403, message, path="/events")
    ran = run("history", "wordcount")
    assert ran.code == 0
    assert "No entries." in ran.out
    no_record, no_events = ran.err.splitlines()
    assert no_record.startswith("No flight record: there is no pod with the label ")
    assert no_events == (
        f"The Events are not readable: {message}; ask for a Role with list on events of events.k8s.io."
    )
    document = yaml.safe_load(run("history", "wordcount", "-o", "yaml").out)
    assert document["notes"] == [no_record, no_events]
    assert (document["source"], document["entries"]) == ("events", [])


def test_text_of_others_cannot_steer_a_terminal(cluster: Cluster, run: Run) -> None:
    cluster.put(a_resource(SETTLED))
    tell(cluster, an_event("it", 60, {"note": "a\x1b[2J", "reason": "b\x1b", "reportingController": "c\x1b"}))
    assert "\x1b" not in run("history", "wordcount").out


def test_only_the_events_of_its_name_are_asked_for(cluster: Cluster, run: Run) -> None:
    cluster.put(a_resource(SETTLED))
    run("history", "wordcount")
    reads = cluster.do(lambda server: list(server.reads))
    assert [read for read in reads if "/events" in read] == [
        "/apis/events.k8s.io/v1/namespaces/demo/events?limit=500&fieldSelector=regarding.name%3Dwordcount"
    ]
