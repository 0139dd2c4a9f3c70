"""`hold`, `pause` and `resume`: one StreamApp or all of them, at 3 a.m."""

import pytest

from tests.builders import a_snapshot
from tests.cli.cluster import Cluster
from tests.cli.conftest import Run
from tests.cli.showing import Json, a_resource
from tests.kube.api_server import ApiServer
from tests.statuses import answer

SETTLED = answer(a_snapshot(desired=3, record=None))
PATCH = ("PATCH", "streamapps")
HOLD = "streamapp.dev/hold"


def an_app(name: str = "wordcount", namespace: str = "demo", changes: Json | None = None) -> Json:
    return a_resource(SETTLED, {"metadata.namespace": namespace, **(changes or {})}, name=name)


def annotations(cluster: Cluster, name: str = "wordcount", namespace: str = "demo") -> Json:
    found: Json = cluster.get(name, namespace)["metadata"].get("annotations", {})
    return found


def paused(cluster: Cluster, *names: str, namespace: str = "demo") -> list[bool]:
    return [cluster.get(name, namespace)["spec"].get("paused", False) for name in names]


def test_hold_writes_the_annotation_and_leaves_others(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app(changes={"metadata.annotations": {"team": "words"}}))
    ran = run("hold", "wordcount", "--reason", "disks are moved")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "demo/wordcount is now held (disks are moved). Before, it was not held by a user.",
        "Scale-downs wait until `kubectl streamapp unhold wordcount`. Scale-ups and rollouts continue.",
    ]
    assert annotations(cluster) == {"team": "words", HOLD: "disks are moved"}
    again = run("hold", "wordcount", "--reason", "disks are moved")
    assert (again.code, again.out) == (0, "demo/wordcount is already held (disks are moved).\n")
    assert cluster.written == [PATCH]
    other = run("hold", "wordcount", "--reason", "still")
    assert "is now held (still). Before, it was held (disks are moved)." in other.out


def test_pause_and_resume_write_one_field(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app())
    before = cluster.get("wordcount")["spec"]
    ran = run("pause", "wordcount")
    assert ran.out.splitlines()[0] == "demo/wordcount is now paused. Before, it was not paused."
    assert cluster.get("wordcount")["spec"] == {**before, "paused": True}
    assert run("pause", "wordcount").out == "demo/wordcount is already paused.\n"
    ran = run("resume", "wordcount")
    assert ran.out.splitlines()[0] == "demo/wordcount is now not paused. Before, it was paused."
    assert cluster.get("wordcount")["spec"] == {**before, "paused": False}
    assert run("resume", "wordcount").out == "demo/wordcount is already not paused.\n"
    assert cluster.written == [PATCH, PATCH]


def test_the_version_that_was_read_is_the_one_that_is_written(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app())

    def hold(server: ApiServer) -> None:
        server.put("streamapps", an_app(changes={"metadata.annotations": {HOLD: "theirs"}}), as_is=True)

    cluster.before_write(hold)
    ran = run("hold", "wordcount", "--reason", "mine")
    assert "is now held (mine). Before, it was held (theirs)." in ran.out
    assert cluster.written == [PATCH, PATCH]


def test_freeze_all_counts_asks_and_writes(cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.put(an_app("a"))
    cluster.put(an_app("b", changes={"spec.paused": True}))
    cluster.put(an_app("c", "prod"))
    asked: list[str] = []

    def yes(question: str, **_: object) -> bool:
        asked.append(question)
        return True

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", yes)
    ran = run("pause", "--all-namespaces")
    assert (ran.code, ran.err) == (0, "")
    assert asked[0].splitlines()[-1] == "Pause 2 StreamApps in demo (1), prod (1); 1 unchanged?"
    assert ran.out.splitlines() == [
        "demo/a is now paused. Before, it was not paused.",
        "demo/b is already paused.",
        "prod/c is now paused. Before, it was not paused.",
        "",
        "pause: 2 StreamApps changed, 1 unchanged, 0 failed.",
    ]
    assert paused(cluster, "a", "b") + paused(cluster, "c", namespace="prod") == [True] * 3


def test_all_of_a_namespace_are_no_others(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app("a"))
    cluster.put(an_app("c", "prod"))
    assert run("hold", "--all", "--reason", "night", "--yes").code == 0
    assert annotations(cluster, "a") == {HOLD: "night"}
    assert annotations(cluster, "c", "prod") == {}
    assert run("hold", "--all", "--reason", "night", "--yes", "-n", "prod").code == 0
    assert annotations(cluster, "c", "prod") == {HOLD: "night"}


def test_whoever_holds_all_leaves_the_holds_of_others_as_they_are(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app("a", changes={"metadata.annotations": {HOLD: "disks"}}))
    cluster.put(an_app("b"))
    ran = run("hold", "--all", "--reason", "night", "--yes")
    assert ran.out.splitlines()[:2] == [
        "demo/a is already held (disks).",
        "demo/b is now held (night). Before, it was not held by a user.",
    ]
    assert annotations(cluster, "a") == {HOLD: "disks"}


def test_a_no_and_a_missing_terminal_write_nothing(cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.put(an_app())
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    ran = run("pause", "--all")
    assert ran.code == 1
    assert "there is no terminal to ask on" in ran.err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    ran = run("pause", "--all")
    assert ran.code == 1
    assert "the answer was no; nothing was written" in ran.err
    assert cluster.written == []


def test_one_that_fails_keeps_no_other_from_it_and_is_named(cluster: Cluster, run: Run) -> None:
    for name in ("a", "b", "c"):
        cluster.put(an_app(name))
    cluster.refuse_write(422, "spec is broken", name="b")
    ran = run("pause", "-A", "--yes")
    assert ran.code == 1
    assert paused(cluster, "a", "b", "c") == [True, False, True]
    assert "pause: 2 StreamApps changed, 0 unchanged, 1 failed." in ran.out
    assert ran.err.splitlines() == [
        "error: StreamApp demo/b",
        "cause: the API server refuses it: spec is broken",
        "next:  correct that; nothing was written",
    ]


def test_one_that_is_deleted_meanwhile_is_named_too(cluster: Cluster, run: Run) -> None:
    for name in ("a", "b"):
        cluster.put(an_app(name))
    cluster.refuse(404, "streamapps a not found", path="streamapps/a")
    ran = run("pause", "-A", "--yes")
    assert (ran.code, paused(cluster, "b")) == (1, [True])
    assert "error: StreamApp demo/a" in ran.err


def test_nothing_to_order_is_told(cluster: Cluster, run: Run) -> None:
    ran = run("pause", "--all", "--yes")
    assert ran.code == 1
    assert "there are none here" in ran.err
    cluster.put(an_app(changes={"spec.paused": True}))
    ran = run("pause", "--all")  # there is nothing to ask
    assert (ran.code, cluster.written) == (0, [])


@pytest.mark.parametrize(
    "arguments",
    [
        ["pause"],
        ["pause", "wordcount", "--all"],
        ["pause", "--all", "-A"],
        ["resume", "-A", "-n", "demo"],
        ["hold", "wordcount"],
        ["hold", "wordcount", "--reason", " "],
        ["hold", "wordcount", "--reason", "x" * 501],
        ["hold", "--reason", "x"],
    ],
)
def test_to_whom_and_why_must_be_said(run: Run, arguments: list[str]) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")


def test_documents(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app())
    assert run("pause", "wordcount", "-o", "json").document == {
        "namespace": "demo",
        "name": "wordcount",
        "action": "pause",
        "was": "not paused",
        "is": "paused",
        "written": True,
    }
    document = run("pause", "-A", "--yes", "-o", "json").document
    assert ([one["written"] for one in document["items"]], document["failures"]) == ([False], [])
    cluster.refuse_write(422, "no")
    ran = run("resume", "-A", "--yes", "-o", "json")
    assert ran.document["failures"] == [
        {
            "what": "StreamApp demo/wordcount",
            "why": "the API server refuses it: no",
            "nextStep": "correct that; nothing was written",
        }
    ]


def test_a_reason_cannot_steer_a_terminal(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app(changes={"metadata.annotations": {HOLD: "\x1b[2J"}}))
    assert "\x1b" not in run("hold", "wordcount", "--reason", "a\x1b[2Jb").out
    assert "\x1b" not in annotations(cluster)[HOLD]
