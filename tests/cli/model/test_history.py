"""`history`: what happened, from the status, the Events and the book of writers, in the order of time."""

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


def an_author(manager: str, ago: float, fields: Json, subresource: str = "") -> Json:
    entry = {"manager": manager, "operation": "Update", "time": zulu(ago), "fieldsV1": fields}
    return {**entry, "subresource": subresource} if subresource else entry


def owning_the_annotation(name: str) -> Json:
    return {"f:metadata": {"f:annotations": {f"f:{name}": {}}}}


def entries(run: Run, *arguments: str) -> list[Json]:
    found: list[Json] = run("history", "wordcount", "-o", "json", *arguments).document["entries"]
    return found


def test_steps_holds_events_and_writers_stand_in_the_order_of_time(cluster: Cluster, run: Run) -> None:
    resource = a_resource(held_status(), {"spec.replicas": 2})
    resource["status"]["lastSteps"] = [
        a_step(heldDuration="4m10s", downtimeMax="640ms", downtimeUncertainty="500ms"),
        a_step(**{"from": 5, "to": 4, "at": zulu(1200), "forced": {"by": "Override", "reason": "the disk is full"}}),
    ]
    desired: Json = {"f:spec": {"f:replicas": {}}}
    resource["metadata"]["managedFields"].append(an_author("kube-controller-manager", 300, desired, "scale"))
    cluster.put(resource)
    tell(cluster, an_event("late", 100), an_event("early", 2000))
    told = entries(run)
    assert [one["what"] for one in told] == ["Created", "ScaledUp", "Step", "Step", "Wish", "ScaledUp", "HoldBegan"]
    assert [one["at"] for one in told] == sorted(one["at"] for one in told)
    assert told[2]["message"] == (
        "5 to 4: not known for how long held, took 12s, worst gap not seen; overridden by Override: the disk is full"
    )
    assert told[2]["warning"] is True
    assert told[3]["message"] == "4 to 3: held for 4m10s, took 12s, worst gap 140ms to 640ms"
    assert told[4] == {
        "at": "2026-11-21T11:55:00+00:00",
        "source": "writer",
        "what": "Wish",
        "message": "Somebody wrote the wish; as it stands it is 2.",
        "by": "kube-controller-manager through scale",
        "warning": False,
        "folded": False,
    }
    assert told[5]["message"] == "The note of late."
    assert told[6]["message"] == "The scale-down 3 to 2 that goes on began as hold h-1."


def test_the_table_has_times_at_every_width(cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.put(a_resource(SETTLED))
    tell(cluster, an_event("it", 90))
    monkeypatch.setenv("COLUMNS", "80")
    narrow = run("history", "wordcount", "--all").out.splitlines()
    assert narrow[0] == "demo/wordcount"
    assert narrow[1].split() == ["when", "(UTC)", "what"]
    assert narrow[-1].split(maxsplit=3) == ["11-21", "11:58:30", "ScaledUp", "The note of it."]
    monkeypatch.setenv("COLUMNS", "120")
    wide = run("history", "wordcount", "--all").out.splitlines()
    assert one_line(wide[-1]) == "2026-11-21 11:58:30 UTC, 1m30s ago ScaledUp operator The note of it."


def test_since_leaves_out_what_is_older(cluster: Cluster, run: Run) -> None:
    cluster.put(a_resource(SETTLED))
    tell(cluster, an_event("new", 599), an_event("old", 601))
    assert [one["message"] for one in entries(run, "--since", "10m")] == ["The note of new."]
    assert "Nothing is on record in this time" in run("history", "wordcount", "--since", "1s").out
    ran = run("history", "wordcount", "--since", "yesterday")
    assert ran.code == 2
    assert "is no duration such as 30m" in ran.err


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
    assert [one["what"] for one in entries(run)] == ["Created"]


def test_events_of_other_programs_say_whose_they_are_and_how_often(cluster: Cluster, run: Run) -> None:
    cluster.put(a_resource(SETTLED))
    others = {"reportingController": "gitops", "series": {"count": 4, "lastObservedTime": zulu(10)}, "type": "Warning"}
    tell(cluster, an_event("it", 500, others))
    (event,) = [one for one in entries(run) if one["source"] == "event"]
    assert (event["by"], event["message"], event["warning"]) == ("gitops", "The note of it. (4 times)", True)
    assert event["at"] == "2026-11-21T11:59:50+00:00"


def test_without_the_right_to_events_the_rest_is_told(cluster: Cluster, run: Run) -> None:
    cluster.put(a_resource(SETTLED | {"lastSteps": [a_step()]}))
    message = 'User "me" cannot list resource "events"'
    cluster.refuse(403, message, path="/events")
    ran = run("history", "wordcount")
    assert ran.code == 0
    assert "4 to 3" in ran.out
    assert ran.err.splitlines()[0] == (
        f"Events are left out: {message}; ask for a Role with list on events of events.k8s.io to see them."
    )
    ran = run("history", "wordcount", "-o", "yaml")
    document = yaml.safe_load(ran.out)
    assert document["missing"].startswith("Events are left out")
    assert [one["what"] for one in document["entries"]] == ["Created", "Step"]


def test_who_held_released_and_paused_is_told(cluster: Cluster, run: Run) -> None:
    notes = {"streamapp.dev/hold": "disks", "streamapp.dev/override": "h-1 why"}
    resource = a_resource(SETTLED, {"metadata.annotations": notes, "spec.paused": True})
    held, released = (owning_the_annotation(name) for name in notes)
    resource["metadata"]["managedFields"] += [
        an_author("kubectl-streamapp", 30, held),
        an_author("kubectl", 20, released),
        an_author("argocd", 10, {"f:spec": {"f:paused": {}}}),
    ]
    cluster.put(resource)
    told = [(one["what"], one["by"], one["message"]) for one in entries(run) if one["source"] == "writer"]
    assert told == [
        ("Held", "kubectl-streamapp", "Somebody held every scale-down: disks."),
        ("Released", "kubectl", "Somebody released hold h-1."),
        ("Paused", "argocd", "Somebody paused it."),
    ]


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
