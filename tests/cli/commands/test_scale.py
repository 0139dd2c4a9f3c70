"""`scale`: what it says before, what it writes, what it refuses, and what others do meanwhile."""

import os
import signal
from typing import Any

import pytest

from tests.builders import a_snapshot
from tests.cli.cluster import Cluster
from tests.cli.conftest import Run
from tests.cli.showing import Json, a_resource, one_line, zulu
from tests.kube.api_server import ApiServer
from tests.statuses import answer, held_status
from tests.streamapps import ABSENT, changed

SETTLED = answer(a_snapshot(desired=3, record=None))
SCALE = [("PATCH", "streamapps/scale")]


def an_app(*, replicas: int = 3, changes: Json | None = None) -> Json:
    """Settled, with so many pods."""
    members = [{"ordinal": number, "active": 4, "learners": 2} for number in range(replicas)]
    status = SETTLED | {
        "statefulSetReplicas": replicas,
        "replicas": replicas,
        "readyReplicas": replicas,
        "members": members,
    }
    return a_resource(status, {"spec.replicas": replicas, **(changes or {})})


def an_autoscaler(changes: Json | None = None) -> Json:
    whole: Json = {
        "metadata": {"name": "words", "namespace": "demo"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "streamapp.dev/v1alpha1", "kind": "StreamApp", "name": "wordcount"},
            "minReplicas": 2,
            "maxReplicas": 10,
        },
    }
    return changed(whole, changes or {})


def autoscale(cluster: Cluster, autoscaler: Json) -> None:
    cluster.do(lambda server: server.put("horizontalpodautoscalers", autoscaler))


def desired(cluster: Cluster) -> int:
    return int(cluster.get("wordcount")["spec"]["replicas"])


def cause(text: str) -> tuple[str, str]:
    """The cause and the next step of one error."""
    lines = text.splitlines()[-3:]
    assert [line[:7] for line in lines] == ["error: ", "cause: ", "next:  "]
    return lines[1][7:], lines[2][7:]


def test_forty_at_eighty_percent_names_eight_ordinals_with_their_tasks(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app(replicas=40))
    ran = run("scale", "wordcount", "--to", "80%", "--dry-run")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "demo/wordcount  from 40 to 32 replicas"
    assert "8 pods will leave, the highest first: pods 32 to 39." in lines
    start = next(number for number, line in enumerate(lines) if line.startswith("pod "))
    table = [line.split() for line in lines[start + 1 : start + 9]]
    assert table == [[str(ordinal), "4", "2"] for ordinal in range(39, 31, -1)]
    assert lines[start + 9] == "total: 32 active tasks, which move, and 16 copies"
    assert lines[-1] == "Dry run: nothing was written."
    assert (desired(cluster), cluster.written) == (40, [])


def test_it_writes_the_wish_through_scale_and_nothing_else(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app(replicas=5))
    before = cluster.get("wordcount")
    ran = run("scale", "wordcount", "--by", "-20%")
    assert (ran.code, ran.err) == (0, "")
    assert "1 pod will leave: pod 4. It waits until all its tasks have caught-up copies on remaining pods." in one_line(
        ran.out
    )
    assert ran.out.splitlines()[-1] == "Written: desired 4."
    after = cluster.get("wordcount")
    assert cluster.written == SCALE
    assert changed(after, {"metadata": {}}) == changed(before, {"spec.replicas": 4, "metadata": {}})
    assert [entry["manager"] for entry in after["metadata"]["managedFields"]][-1] == "kubectl-streamapp"


def test_with_the_streams_protocol_standbys_are_raised_on_demand_and_no_override_is_needed(
    cluster: Cluster, run: Run
) -> None:
    app = an_app(replicas=5)
    app["status"] |= {"learnerSource": "OnDemand", "groupProtocol": "streams"}
    cluster.put(app)
    said = one_line(run("scale", "wordcount", "4", "--dry-run").out)
    assert (
        "It waits until all its tasks have caught-up copies on remaining pods. The operator raises the standbys of the "
        "group for it." in said
    )
    assert "override" not in said
    more = one_line(run("scale", "wordcount", "6", "--dry-run").out)
    assert "1 pod will be added at once: pod 5. Brokers give new pods stateful tasks at once, without a copy" in more


@pytest.mark.parametrize(
    ("arguments", "replicas"), [(["4"], 4), (["--to", "50%"], 3), (["--by", "+2"], 7), (["--by", "-2"], 3)]
)
def test_every_way_to_say_how_many(cluster: Cluster, run: Run, arguments: list[str], replicas: int) -> None:
    cluster.put(an_app(replicas=5))
    assert run("scale", "wordcount", *arguments).code == 0
    assert desired(cluster) == replicas


def test_rounding_is_said(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app(replicas=3))
    ran = run("scale", "wordcount", "--to", "80%")
    assert "80 % of 3 desired replicas is 3 (2.4, rounded up)." in ran.out
    assert "Desired is already 3: there is nothing to write." in ran.out
    assert cluster.written == []


def test_growth_and_a_hold_that_is_called_off_are_told(cluster: Cluster, run: Run) -> None:
    cluster.put(a_resource(held_status(), {"spec.replicas": 2}))
    text = run("scale", "wordcount", "5", "--dry-run").out
    assert "2 pods will be added at once: pods 3 and 4.\nThis cancels the present scale-down.\n" in text
    assert "cancels the present scale-down: pod 2 stays." in run("scale", "wordcount", "3", "--dry-run").out
    deeper = run("scale", "wordcount", "1", "--dry-run").out
    assert (
        "2 pods will leave, the highest first: pods 1 and 2.\nThe present scale-down already removes 1 of them."
        in deeper
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"spec.paused": True},
            "It is paused: the new number has no effect before `kubectl streamapp resume wordcount`.",
        ),
        (
            {"spec.dryRun": True},
            "It is a dry run (`spec.dryRun`): the operator decides everything and changes nothing.",
        ),
        (
            {"metadata.annotations": {"streamapp.dev/hold": "disks"}},
            "A user holds scale-downs (disks): no pod leaves before `kubectl streamapp unhold wordcount`.",
        ),
        ({"metadata.deletionTimestamp": zulu(1)}, "The StreamApp is being deleted: the new number has no effect."),
        ({"metadata.generation": 2}, "the status is for generation 1, and the spec has generation 2."),
        (
            {"spec.scaleDown": {"policy": "Immediate", "reason": "test"}},
            "without waiting for copies of tasks (`scaleDown.policy: Immediate`)",
        ),
    ],
)
def test_what_keeps_it_from_having_an_effect_is_said(
    cluster: Cluster, run: Run, changes: dict[str, Any], said: str
) -> None:
    cluster.put(an_app(changes=changes))
    assert said in one_line(run("scale", "wordcount", "1", "--dry-run").out)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--by", "-4"], "--by -4 of 3 replicas is less than zero"),
        (["1001"], "1,001 replicas exceed the limit of 1,000"),
        (["0"], "zero replicas stop the application, and its spec does not allow them (`scaleDown.allowZero`)"),
        (["--by", "-100%"], "zero replicas stop the application"),
    ],
)
def test_a_number_that_cannot_be_is_refused_before_the_server_does(
    cluster: Cluster, run: Run, arguments: list[str], why: str
) -> None:
    cluster.put(an_app())
    for further in ([], ["--dry-run"]):
        ran = run("scale", "wordcount", *arguments, *further)
        assert (ran.code, ran.out) == (1, "")
        assert cause(ran.err)[0].startswith(why)
    assert cluster.written == []


def test_zero_is_written_where_it_is_allowed(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app(changes={"spec.scaleDown": {"allowZero": True}}))
    ran = run("scale", "wordcount", "0")
    assert (ran.code, desired(cluster)) == (0, 0)
    assert "The application stops, and its users wait until pods are back" in one_line(ran.out)


@pytest.mark.parametrize(
    ("to", "patch"),
    [
        ("2", '{"spec":{"maxReplicas":2}}'),
        ("1", '{"spec":{"maxReplicas":1,"minReplicas":1}}'),
        ("5", '{"spec":{"minReplicas":5}}'),
        ("12", '{"spec":{"minReplicas":12,"maxReplicas":12}}'),
    ],
)
def test_an_autoscaler_that_would_overwrite_it_is_named_with_the_next_step(
    cluster: Cluster, run: Run, to: str, patch: str
) -> None:
    cluster.put(an_app())
    autoscale(cluster, an_autoscaler())
    ran = run("scale", "wordcount", to)
    assert (ran.code, ran.out) == (1, "")
    assert "StreamApp demo/wordcount, driven by HorizontalPodAutoscaler words (min 2, max 10)" in ran.err
    why, step = cause(ran.err)
    assert why == f"it sets the replicas, and would overwrite {to} within seconds"
    assert f"`kubectl patch hpa words --namespace demo --type=merge -p '{patch}'`" in step
    assert cluster.written == []


def test_a_dry_run_beside_an_autoscaler_says_what_would_come_and_that_it_is_refused(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app())
    autoscale(cluster, an_autoscaler({"spec.minReplicas": ABSENT}))
    ran = run("scale", "wordcount", "2", "--dry-run")
    assert ran.code == 1
    assert (
        "HorizontalPodAutoscaler words (min 1, max 10) also sets the replicas, and overwrites this number." in ran.out
    )
    assert "would overwrite 2" in ran.err


def test_a_person_may_write_beside_an_autoscaler(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app())
    autoscale(cluster, an_autoscaler())
    assert run("scale", "wordcount", "2", "--despite-autoscaler").code == 0
    assert desired(cluster) == 2


def test_an_autoscaler_made_by_keda_is_changed_where_it_is_made(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app(changes={"spec.scaleDown": {"allowZero": True}}))
    owner = {"kind": "ScaledObject", "name": "words-lag"}
    autoscale(cluster, an_autoscaler({"metadata.ownerReferences": [owner]}))
    ran = run("scale", "wordcount", "0")
    assert ran.code == 1
    assert "change minReplicaCount and maxReplicaCount of ScaledObject words-lag" in cause(ran.err)[1]


def test_an_autoscaler_stands_still_at_zero_and_does_not_overwrite_it(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app(changes={"spec.scaleDown": {"allowZero": True}}))
    autoscale(cluster, an_autoscaler())
    assert run("scale", "wordcount", "0").code == 0
    assert desired(cluster) == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"spec.scaleTargetRef.name": "other"},
        {"spec.scaleTargetRef.kind": "StatefulSet"},
        {"spec.scaleTargetRef.apiVersion": "other.dev/v1"},
        {"metadata.namespace": "other"},
    ],
)
def test_an_autoscaler_of_something_else_is_in_nobodys_way(cluster: Cluster, run: Run, changes: dict[str, Any]) -> None:
    cluster.put(an_app())
    autoscale(cluster, an_autoscaler(changes))
    assert run("scale", "wordcount", "2").code == 0


def test_where_autoscalers_cannot_be_listed_nothing_is_written_unasked(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app())
    cluster.refuse(403, 'User "me" cannot list resource "horizontalpodautoscalers"', path="horizontalpodautoscalers")
    ran = run("scale", "wordcount", "2")
    assert (ran.code, ran.out, cluster.written) == (1, "", [])
    assert "autoscalers cannot be listed" in cause(ran.err)[0]
    ran = run("scale", "wordcount", "2", "--despite-autoscaler")
    assert ran.code == 0
    assert "An autoscaler may overwrite the number; autoscalers cannot be listed" in ran.out
    assert desired(cluster) == 2


def test_an_api_server_without_autoscalers_has_none(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app())
    cluster.refuse(404, "404 page not found", path="horizontalpodautoscalers")
    assert run("scale", "wordcount", "2").code == 0


def test_a_status_that_is_written_meanwhile_does_not_matter(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app(replicas=5))
    cluster.before_write(*[touch] * 3)
    ran = run("scale", "wordcount", "--by", "-20%")
    assert (ran.code, desired(cluster)) == (0, 4)
    assert cluster.written == SCALE * 4
    assert ran.out.count("1 pod will leave") == 1


def test_another_number_that_is_written_meanwhile_is_said(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app(replicas=5))
    cluster.before_write(lambda server: server.put("streamapps", by_another(6), as_is=True))
    ran = run("scale", "wordcount", "4")
    assert (ran.code, desired(cluster)) == (0, 4)
    assert ran.err == "The desired replicas changed from 5 to 6 by kube-controller-manager meanwhile.\n"
    assert "from 5 to 4 replicas" in ran.out
    assert "from 6 to 4 replicas" in ran.out


def test_a_share_of_another_number_is_not_written(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app(replicas=5))
    cluster.before_write(lambda server: server.put("streamapps", by_another(4), as_is=True))
    ran = run("scale", "wordcount", "--by", "-20%")
    assert (ran.code, desired(cluster)) == (1, 4)
    assert cause(ran.err)[0] == (
        "the desired replicas changed from 5 to 4 by kube-controller-manager meanwhile, and --by -20% was "
        "relative to 5; nothing was written"
    )


def test_the_same_number_from_another_is_not_written_again(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app(replicas=5))
    cluster.before_write(lambda server: server.put("streamapps", by_another(4), as_is=True))
    ran = run("scale", "wordcount", "4", "-o", "json")
    assert (ran.code, ran.document["written"], cluster.written) == (0, False, SCALE)


def test_a_write_that_never_comes_through_is_given_up(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app())
    cluster.do(lambda server: setattr(server, "fault", lambda _: "conflict"))
    ran = run("scale", "wordcount", "2")
    assert ran.code == 1
    assert cause(ran.err)[0] == "other writers changed it before each attempt"


@pytest.mark.parametrize(
    ("status", "message", "why", "step"),
    [
        (
            *(403, 'User "me" cannot patch resource "streamapps/scale"'),
            'User "me" cannot patch resource "streamapps/scale"',
            "ask for a Role with get and patch on streamapps/scale of streamapp.dev",
        ),
        (
            *(422, "spec.replicas: must be odd"),
            "the API server refuses it: spec.replicas: must be odd",
            "correct that; nothing was written",
        ),
        (
            *(403, "denied request: not on Fridays"),
            "the API server refuses it: denied request: not on Fridays",
            "correct that; nothing was written",
        ),
        (404, "not found", "it was deleted meanwhile", "list them all"),
        (
            *(500, "etcd"),
            "the write was not answered, and may have been made: 500: etcd",
            "check with `kubectl streamapp status` before you run the command again",
        ),
    ],
)
def test_what_the_server_refuses_is_told_with_its_cause_and_the_next_step(
    cluster: Cluster, run: Run, status: int, message: str, why: str, step: str
) -> None:
    cluster.put(an_app())
    cluster.refuse_write(status, message)
    ran = run("scale", "wordcount", "2")
    assert ran.code == 1
    told = cause(ran.err)
    assert told[0] == why
    assert told[1].startswith(step)


def test_a_name_that_is_not_there_is_told_as_ever(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app())
    ran = run("scale", "wordcoumt", "2")
    assert (ran.code, cause(ran.err)) == (1, ("it does not exist", "did you mean wordcount?"))


@pytest.mark.parametrize(
    "arguments",
    [[], ["--to", "80%", "--by", "-1"], ["3", "--to", "4"], ["three"], ["--to", "-20%"], ["--by", "20%"]],
)
def test_how_many_is_said_in_exactly_one_way(run: Run, arguments: list[str]) -> None:
    ran = run("scale", "wordcount", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "Usage: kubectl streamapp scale" in ran.err


def test_the_document_has_everything(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app())
    document = run("scale", "wordcount", "--to", "50%", "-o", "json").document
    assert document.pop("notes")[1] == "1 pod will leave: pod 2."
    assert document == {
        "namespace": "demo",
        "name": "wordcount",
        "asked": "--to 50%",
        "from": 3,
        "to": 2,
        "statefulSetReplicas": 3,
        "dryRun": False,
        "written": True,
        "leaving": [{"ordinal": 2, "active": 4, "copies": 2}],
        "autoscalers": [],
        "warnings": [],
    }


def test_wait_ends_when_as_many_are_granted(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app())

    def hold_then_grant() -> None:
        cluster.put(a_resource(held_status(), {"spec.replicas": 2}))
        cluster.put(an_app(replicas=2))

    cluster.when_watched(hold_then_grant)
    ran = run("scale", "wordcount", "2", "--wait")
    assert (ran.code, ran.err) == (0, "")
    titles = [line for line in ran.out.splitlines() if line.startswith("demo/wordcount")]
    assert titles[0] == "demo/wordcount  from 3 to 2 replicas"
    assert titles[-2:] == ["demo/wordcount  HELD  LearnersCatchingUp", "demo/wordcount  SETTLED  Converged"]


def test_wait_does_not_take_the_word_about_an_earlier_spec(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app())
    assert run("scale", "wordcount", "3", "--wait").code == 0
    # As many are granted as are wished for, but that was said of another spec.
    cluster.when_watched(lambda: os.kill(os.getpid(), signal.SIGINT))
    cluster.put(an_app(changes={"metadata.generation": 2}))
    assert run("scale", "wordcount", "3", "--wait").code == 130


def test_wait_fails_when_it_is_deleted(cluster: Cluster, run: Run) -> None:
    cluster.put(an_app())
    cluster.when_watched(lambda: cluster.remove("wordcount"))
    ran = run("scale", "wordcount", "2", "--wait")
    assert ran.code == 1
    assert ran.out.splitlines()[-1] == "demo/wordcount was deleted."


def by_another(replicas: int) -> Json:
    """The same, with a wish that an autoscaler has written."""
    resource = an_app(replicas=5)
    resource["spec"]["replicas"] = replicas
    author = {
        "manager": "kube-controller-manager",
        "subresource": "scale",
        "time": zulu(0),
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
    }
    resource["metadata"]["managedFields"].append(author)
    return resource


def touch(server: ApiServer) -> None:
    """Write the status, as the operator does every few seconds."""
    found = server.get("streamapps", "demo", "wordcount")
    assert found is not None
    server.put("streamapps", found)
