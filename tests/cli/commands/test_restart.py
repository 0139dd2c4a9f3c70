"""`restart`: which pod is meant, what is given up, and that the claim goes only with its request on record."""

from datetime import datetime
from functools import partial
from typing import Any

import pytest

from tests.builders import NOW
from tests.cli.cluster import NAMESPACE, Cluster
from tests.cli.conftest import Run
from tests.cli.showing import Json, a_resource, one_line
from tests.kube.api_server import ApiServer
from tests.statuses import held_status

RESTART = "streamapp.dev/restart"
CLAIMS = "persistentvolumeclaims"


def a_pod(ordinal: int, uid: str, *, ready: bool = True, **metadata: Any) -> Json:
    return {
        "metadata": {
            "name": f"wordcount-{ordinal}",
            "namespace": NAMESPACE,
            "uid": uid,
            "labels": {"streamapp.dev/app": "wordcount"},
            **metadata,
        },
        "status": {"conditions": [{"type": "Ready", "status": str(ready)}]},
    }


def put_pods(server: ApiServer) -> None:
    server.graceful = frozenset({"pods", CLAIMS})
    for ordinal in range(3):
        server.put("pods", a_pod(ordinal, f"uid-{ordinal}"))
        metadata = {"name": f"state-wordcount-{ordinal}", "namespace": NAMESPACE}
        server.put(CLAIMS, {"metadata": metadata, "spec": {"resources": {"requests": {"storage": "2Gi"}}}})


@pytest.fixture
def three_pods(cluster: Cluster) -> Cluster:
    cluster.put(a_resource(held_status(), {"spec.replicas": 3}))
    cluster.do(put_pods)
    return cluster


def request(cluster: Cluster) -> str | None:
    found: str | None = cluster.get("wordcount")["metadata"].get("annotations", {}).get(RESTART)
    return found


def is_going(cluster: Cluster, ordinal: int) -> bool:
    claim = cluster.do(lambda server: server.get(CLAIMS, NAMESPACE, f"state-wordcount-{ordinal}"))
    assert claim is not None
    return "deletionTimestamp" in claim["metadata"]


def test_it_names_the_pod_by_its_uid_and_keeps_its_volume(three_pods: Cluster, run: Run) -> None:
    ran = run("restart", "wordcount", "--ordinal", "1")
    assert (ran.code, ran.err, request(three_pods)) == (0, "", "uid-1")
    assert "The operator restarts pod wordcount-1 when every stateful task that it runs has a caught-up copy" in (
        one_line(ran.out)
    )
    assert not is_going(three_pods, 1)
    assert run("restart", "wordcount", "--ordinal", "1").code == 0
    assert three_pods.written == [("PATCH", "streamapps")]


def test_requests_for_pods_that_are_gone_are_left_out_and_others_stay(three_pods: Cluster, run: Run) -> None:
    before = "uid-0 new-volume, uid-of-a-pod-that-is-gone"
    three_pods.put(a_resource(held_status(), {"spec.replicas": 3, "metadata.annotations": {RESTART: before}}))
    run("restart", "wordcount", "--ordinal", "2")
    assert request(three_pods) == "uid-0 new-volume, uid-2"


def test_a_request_that_another_user_made_meanwhile_stays_though_its_pod_came_later(
    three_pods: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it, the claim that the other user gave up would hold every restart and every scale-down."""

    def ask_for_a_later_pod(*_: object, **__: object) -> bool:
        theirs = {"spec.replicas": 3, "metadata.annotations": {RESTART: "later new-volume"}}
        three_pods.do(partial(replace_with, a_pod(1, "later")))
        three_pods.put(a_resource(held_status(), theirs))
        return True

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", ask_for_a_later_pod)
    assert run("restart", "wordcount", "--ordinal", "2", "--new-volume").code == 0
    assert request(three_pods) == "later new-volume, uid-2 new-volume"


def test_no_claim_goes_for_a_request_that_is_one_more_than_the_operator_reads(three_pods: Cluster, run: Run) -> None:
    pods = [f"of-{number}" for number in range(100)]
    three_pods.do(lambda server: [server.put("pods", a_pod(9 + at, uid)) for at, uid in enumerate(pods)])
    asked = ", ".join(f"{uid} new-volume" for uid in pods)
    three_pods.put(a_resource(held_status(), {"spec.replicas": 200, "metadata.annotations": {RESTART: asked}}))
    ran = run("restart", "wordcount", "--ordinal", "1", "--new-volume", "--yes")
    assert (ran.code, request(three_pods), is_going(three_pods, 1)) == (1, asked, False)
    assert "100 restarts are asked for already" in one_line(ran.err)
    assert run("restart", "wordcount", "--ordinal", "9", "--new-volume", "--yes").code == 0


def test_a_request_for_a_new_volume_is_not_replaced_by_one_that_keeps_the_volume(three_pods: Cluster, run: Run) -> None:
    """Its claim is going: without that request it would hold every restart, this one too, and every scale-down."""
    run("restart", "wordcount", "--ordinal", "1", "--new-volume", "--yes")
    ran = run("restart", "wordcount", "--ordinal", "1")
    assert (ran.code, request(three_pods), is_going(three_pods, 1)) == (1, "uid-1 new-volume", True)
    assert "a new volume is asked for already; nothing was written" in one_line(ran.err)
    assert run("restart", "wordcount", "--ordinal", "1", "--new-volume", "--yes").code == 0


def test_with_a_new_volume_the_claim_goes_after_a_yes_and_after_the_request(
    three_pods: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    refused = run("restart", "wordcount", "--ordinal", "1", "--new-volume")
    assert (refused.code, request(three_pods), is_going(three_pods, 1)) == (1, None, False)
    ran = run("restart", "wordcount", "--ordinal", "1", "--new-volume", "--yes")
    assert (ran.code, request(three_pods), is_going(three_pods, 1)) == (0, "uid-1 new-volume", True)
    assert "Volume claim state-wordcount-1 (2Gi) is deleted" in one_line(ran.out)
    assert three_pods.written == [("PATCH", "streamapps"), ("DELETE", CLAIMS)]
    assert not is_going(three_pods, 0)


def test_a_claim_that_cannot_be_deleted_is_named_with_its_cause(three_pods: Cluster, run: Run) -> None:
    three_pods.refuse_write(403, "you may not", name="state-wordcount-1")
    ran = run("restart", "wordcount", "--ordinal", "1", "--new-volume", "--yes")
    assert (ran.code, is_going(three_pods, 1)) == (1, False)
    assert "state-wordcount-1" in ran.err


def test_a_request_whose_claim_cannot_be_deleted_is_withdrawn(three_pods: Cluster, run: Run) -> None:
    three_pods.refuse_write(403, "you may not", name="state-wordcount-1")
    run("restart", "wordcount", "--ordinal", "0")
    run("restart", "wordcount", "--ordinal", "1", "--new-volume", "--yes")
    assert request(three_pods) == "uid-0"


def test_a_request_that_was_there_before_is_not_withdrawn_nor_one_whose_claim_goes(
    three_pods: Cluster, run: Run
) -> None:
    assert run("restart", "wordcount", "--ordinal", "1", "--new-volume", "--yes").code == 0
    three_pods.refuse_write(403, "you may not", name="state-wordcount-1")
    assert run("restart", "wordcount", "--ordinal", "1", "--new-volume", "--yes").code == 1
    assert (request(three_pods), is_going(three_pods, 1)) == ("uid-1 new-volume", True)


def test_a_pod_that_leaves_can_have_a_new_volume_since_its_old_one_keeps_it(three_pods: Cluster, run: Run) -> None:
    three_pods.put(a_resource(held_status(), {"spec.replicas": 2}))
    assert run("restart", "wordcount", "--ordinal", "2", "--new-volume", "--yes").code == 0
    assert request(three_pods) == "uid-2 new-volume"


@pytest.mark.guarantee(4)
def test_the_claim_of_a_pod_that_was_replaced_meanwhile_is_kept(three_pods: Cluster, run: Run) -> None:
    three_pods.before_write(partial(replace_with, a_pod(1, "the next")))
    ran = run("restart", "wordcount", "--ordinal", "1", "--new-volume", "--yes")
    assert (ran.code, is_going(three_pods, 1), request(three_pods)) == (1, False, None)
    assert "pod wordcount-1 was replaced meanwhile" in one_line(ran.err)


@pytest.mark.parametrize(
    "changes", [{"spec.rollout": {"policy": "Immediate"}}, {"spec.replicas": 1}, {"status.learnerSource": "None"}]
)
def test_a_restart_that_no_copy_covers_is_said_to_be_one_and_asks(
    three_pods: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch, changes: Json
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    resource = a_resource(held_status(), {"spec.replicas": 3, **changes})
    resource["status"]["learnerSource"] = changes.get("status.learnerSource", "Standbys")
    three_pods.put(resource)
    ran = run("restart", "wordcount", "--ordinal", "0")
    assert (ran.code, request(three_pods)) == (1, None)
    assert "No copy of the tasks of pod wordcount-0 is waited for" in one_line(ran.out)
    assert run("restart", "wordcount", "--ordinal", "0", "--yes").code == 0
    assert request(three_pods) == "uid-0"


def test_wait_ends_when_the_restart_is_withdrawn(three_pods: Cluster, run: Run) -> None:
    def withdraw(server: ApiServer) -> None:
        app = server.get("streamapps", NAMESPACE, "wordcount")
        assert app is not None
        server.put("streamapps", {**app, "metadata": {**app["metadata"], "annotations": {}}}, as_is=True)

    three_pods.before_write(lambda _: None, withdraw)
    ran = run("restart", "wordcount", "--ordinal", "1", "--new-volume", "--yes", "--wait")
    assert (ran.code, "the restart was withdrawn" in ran.err) == (1, True)


def test_a_claim_that_another_writer_changes_meanwhile_is_deleted_all_the_same(three_pods: Cluster, run: Run) -> None:
    def annotate(server: ApiServer) -> None:
        claim = server.get(CLAIMS, NAMESPACE, "state-wordcount-1")
        assert claim is not None
        server.put(CLAIMS, {**claim, "metadata": {**claim["metadata"], "annotations": {"other": "word"}}})

    three_pods.before_write(lambda _: None, annotate)
    assert run("restart", "wordcount", "--ordinal", "1", "--new-volume", "--yes").code == 0
    assert is_going(three_pods, 1)


def test_a_claim_of_that_name_that_is_another_one_by_now_is_kept(three_pods: Cluster, run: Run) -> None:
    def again(server: ApiServer) -> None:
        server.remove(CLAIMS, NAMESPACE, "state-wordcount-1")
        server.put(CLAIMS, {"metadata": {"name": "state-wordcount-1", "namespace": NAMESPACE, "uid": "a new one"}})

    three_pods.before_write(again)
    assert run("restart", "wordcount", "--ordinal", "1", "--new-volume", "--yes").code == 0
    assert not is_going(three_pods, 1)


@pytest.mark.parametrize(
    ("changes", "ordinal", "why"),
    [
        ({"spec.paused": True}, 1, "it is paused, so the operator restarts nothing"),
        ({"spec.dryRun": True}, 1, "it is a dry run"),
        ({"spec.replicas": 2}, 2, "ordinal 2 is none of the 2 desired replicas, so its pod leaves"),
        ({"spec.replicas": 5}, 4, "there is no pod wordcount-4"),
    ],
)
def test_what_the_operator_would_not_do_is_refused(
    three_pods: Cluster, run: Run, changes: Json, ordinal: int, why: str
) -> None:
    three_pods.put(a_resource(held_status(), {"spec.replicas": 3, **changes}))
    ran = run("restart", "wordcount", "--ordinal", str(ordinal))
    assert ran.code == 1
    assert why in one_line(ran.err)
    assert three_pods.written == []


def test_a_dry_run_writes_nothing(three_pods: Cluster, run: Run) -> None:
    ran = run("restart", "wordcount", "--ordinal", "1", "--new-volume", "--dry-run")
    assert (ran.code, three_pods.written, ran.out.splitlines()[-1]) == (0, [], "Dry run: nothing was written.")


def test_cancel_withdraws_every_request(three_pods: Cluster, run: Run) -> None:
    run("restart", "wordcount", "--ordinal", "1")
    assert run("restart", "wordcount", "--cancel", "-o", "json").document["withdrawn"] == 1
    assert request(three_pods) is None
    assert run("restart", "wordcount", "--cancel").out == "No restart was asked for.\n"
    assert run("restart", "wordcount", "--cancel", "--ordinal", "1").code == 2


def test_wait_ends_when_the_next_pod_is_ready(three_pods: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamapp.cli.commands.restart.LOOK_SECONDS", 0.01)
    looks = [
        a_pod(1, "uid-1", deletionTimestamp="2026-01-01T00:00:00Z"),
        a_pod(1, "the next", ready=False),
        a_pod(1, "the next"),
    ]
    looked = [0]

    def now() -> datetime:
        """Before each look the pod is a step further; the first two are the command's own."""
        looked[0] += 1
        if looked[0] > 2 and looks:
            three_pods.do(partial(replace_with, looks.pop(0)))
        return NOW

    monkeypatch.setattr("streamapp.cli.screens.watch.now", now)
    ran = run("restart", "wordcount", "--ordinal", "1", "--wait")
    assert ran.code == 0
    assert [line.split("  ")[1] for line in ran.out.splitlines() if line[2:3] == ":"] == [
        "wordcount-1 waits: LearnersCatchingUp",
        "wordcount-1 stops",
        "wordcount-1 starts",
        "wordcount-1 is ready",
    ]


def replace_with(pod: Json, server: ApiServer) -> None:
    server.remove("pods", NAMESPACE, "wordcount-1")
    server.put("pods", pod)
