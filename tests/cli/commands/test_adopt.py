"""`adopt`: what stands in the way, what it writes and in which order, and how the next run goes on."""

import itertools
import json
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from streamapp.api.names import ADOPTED_FROM, ADOPTION_PAUSE, APP_LABEL
from streamapp.api.validation.parse import StreamApp, parse
from streamapp.cli.commands import adoption
from tests.cli.adopting import NAME, World, a_statefulset
from tests.cli.cluster import NAMESPACE, Cluster
from tests.cli.conftest import Ran, Run
from tests.kube.api_server import Write

Json = dict[str, Any]
ADOPT = ("adopt", f"statefulset/{NAME}", "--yes")
WRITES = [
    ("POST", "streamapps"),
    ("PATCH", "services"),
    ("PATCH", "statefulsets"),
    *[("PATCH", "pods")] * 3,
    ("DELETE", "statefulsets"),
]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adoption, "LOOK_AGAIN_SECONDS", 0.002)


@pytest.fixture
def world(cluster: Cluster) -> World:
    return World(cluster).start()


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each look at the clock find it ten seconds later."""
    clock = itertools.count(0.0, 10.0)
    monkeypatch.setattr(adoption, "time", SimpleNamespace(monotonic=lambda: next(clock)))


def is_adopted(world: World) -> None:
    app, statefulset = world.get("streamapps"), world.get("statefulsets")
    assert world.owners("statefulsets") == [("StreamApp", app["metadata"]["uid"])]
    assert statefulset["spec"]["replicas"] == 3
    assert {tuple(world.owners("pods", name)) for name in world.pods()} == {
        (("StatefulSet", statefulset["metadata"]["uid"]),)
    }
    assert app["spec"].get("paused", False) is False


def codes(ran: Ran) -> set[str]:
    return {one["code"] for one in ran.document["findings"] if one["severity"] == "error"}


def test_it_adopts_without_a_new_pod_and_writes_in_this_order(world: World, run: Run) -> None:
    before = world.uids()
    ran = run(*ADOPT)
    assert ran.code == 0, ran.err
    assert "StatefulSet demo/counter belongs to the operator. 3 pods run on, 0 restarted meanwhile." in ran.out
    assert world.uids() == before
    is_adopted(world)
    assert world.cluster.written == WRITES


def test_no_pod_restarts_and_none_lacks_the_label_when_the_statefulset_is_let_go(world: World, run: Run) -> None:
    seen: list[tuple[str, str, set[str]]] = []

    def look(write: Write) -> None:
        if write.method == "DELETE":
            server = world.cluster.server
            body = server.get("statefulsets", NAMESPACE, NAME) or {}
            pods = [server.get("pods", NAMESPACE, f"{NAME}-{number}") or {} for number in range(3)]
            labels = {pod["metadata"]["labels"].get(APP_LABEL, "") for pod in pods}
            template = body["spec"]["template"]["metadata"]["labels"][APP_LABEL]
            seen.append((body["spec"]["updateStrategy"]["type"], template, labels))

    world.cluster.do(lambda server: setattr(server, "fault", look))
    assert run(*ADOPT).code == 0
    assert seen == [("OnDelete", NAME, {NAME})]


def test_a_dry_run_prints_a_manifest_that_the_operator_accepts_and_writes_nothing(world: World, run: Run) -> None:
    ran = run("adopt", f"sts/{NAME}", "--dry-run")
    assert (ran.code, world.cluster.written) == (0, [])
    made = yaml.safe_load(ran.out)
    spec = made["spec"]
    assert ADOPTED_FROM in made["metadata"].pop("annotations")
    assert made["metadata"] == {"name": NAME, "namespace": NAMESPACE}
    claim = a_statefulset()["spec"]["volumeClaimTemplates"][0]["spec"]
    assert {key: value for key, value in spec.items() if key != "template"} == {
        "replicas": 3,
        "applicationId": "counter-eu",
        "kafka": {"bootstrapServers": "kafka:9092"},
        "state": {"mountPath": "/state", "claimName": "datadir", "volumeClaimTemplate": claim},
        "rollout": {"policy": "Paused"},
    }
    assert spec["template"] == a_statefulset()["spec"]["template"]
    metadata = {**made["metadata"], "uid": "u", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    assert isinstance(parse({**made, "metadata": metadata}), StreamApp)
    assert "UpdateStrategyChanges" in ran.err


def test_the_manifest_of_a_dry_run_can_be_applied_first(world: World, run: Run) -> None:
    made = yaml.safe_load(run("adopt", f"sts/{NAME}", "--dry-run").out)
    world.put("streamapps", made)
    ran = run(*ADOPT)
    assert ran.code == 0, ran.err
    is_adopted(world)
    # a generation of its own proves that an operator runs now
    assert world.cluster.written[:2] == [("PATCH", "streamapps")] * 2


def test_an_api_that_is_not_there_is_refused_to_a_user_without_rights_and_holds_nothing(world: World, run: Run) -> None:
    world.cluster.refuse(403, "forbidden", path="scaledobjects")
    assert run(*ADOPT).code == 0


def test_a_right_that_lacks_is_named_before_the_first_write(world: World, run: Run) -> None:
    world.denied = {("delete", "statefulsets")}
    ran = run(*ADOPT)
    assert (ran.code, world.cluster.written) == (1, [])
    assert "RightMissing: delete statefulsets" in ran.err


def helm(body: Json) -> None:
    body["metadata"]["annotations"] = {"meta.helm.sh/release-name": "counter"}


def test_an_owner_holds_it_and_can_be_overridden_by_name_only(cluster: Cluster, run: Run) -> None:
    world = World(cluster).start(helm)
    dry = run("adopt", f"sts/{NAME}", "--dry-run", "-o", "json")
    assert (dry.code, codes(dry)) == (1, {"ManagedElsewhere"})
    refused = run(*ADOPT)
    assert (refused.code, cluster.written) == (1, [])
    assert "ManagedElsewhere: StatefulSet demo/counter: Helm" in refused.err
    assert run(*ADOPT, "--despite-owner").code == 0
    is_adopted(world)


def test_autoscalers_that_cannot_be_listed_hold_the_command(world: World, run: Run) -> None:
    world.cluster.refuse(403, "forbidden", path="horizontalpodautoscalers")
    assert codes(run("adopt", f"sts/{NAME}", "--dry-run", "-o", "json")) == {"AutoscalersUnread"}
    assert run(*ADOPT, "--despite-autoscaler").code == 0


@pytest.mark.parametrize("fault", ["before", "after"])
@pytest.mark.parametrize("number", range(1, len(WRITES) + 1))
def test_a_run_that_is_cut_off_at_any_write_is_continued_by_the_next(
    world: World, run: Run, number: int, fault: str
) -> None:
    before = world.uids()
    world.cluster.do(lambda server: setattr(server, "fault", lambda write: fault if write.number == number else None))
    first = run(*ADOPT)
    # The HTTP client itself repeats a delete, which is fenced; nothing else is repeated.
    assert first.code == (0 if WRITES[number - 1][0] == "DELETE" else 1)
    if first.code:
        assert "run the command again" in first.err
        second = run(*ADOPT)
        assert second.code == 0, second.err
    assert world.uids() == before
    is_adopted(world)


def test_a_conflict_is_read_again(world: World, run: Run) -> None:
    world.cluster.do(lambda server: setattr(server, "fault", lambda write: "conflict" if write.number % 2 else None))
    before = world.uids()
    # the first write makes the StreamApp, so that the operator is asked by a generation of its own
    assert run(*ADOPT).code == 0
    assert world.uids() == before
    is_adopted(world)


def test_a_missing_right_in_mid_way_leaves_the_old_statefulset_in_charge(world: World, run: Run) -> None:
    uid = world.get("statefulsets")["metadata"]["uid"]
    world.cluster.refuse_write(403, 'user "me" cannot patch resource "pods"', name="counter-1")
    ran = run(*ADOPT)
    assert ran.code == 1
    assert "ask for a Role with get and patch on pods" in ran.err
    assert world.get("statefulsets")["metadata"]["uid"] == uid
    assert {tuple(world.owners("pods", name)) for name in world.pods()} == {(("StatefulSet", uid),)}
    world.cluster.do(lambda server: setattr(server, "refuse_write", lambda _: None))
    assert run(*ADOPT).code == 0
    is_adopted(world)


def test_replicas_that_rise_in_mid_way_are_not_lost(world: World, run: Run) -> None:
    """An autoscaler that nobody saw raises them after the checks: the fence of the delete finds another version."""

    def scale(write: Write) -> None:
        server = world.cluster.server
        body = server.get("statefulsets", NAMESPACE, NAME)
        if write.method == "DELETE" and body is not None and body["spec"]["replicas"] == 3:
            server.put("statefulsets", {**body, "spec": {**body["spec"], "replicas": 4}})

    world.cluster.do(lambda server: setattr(server, "fault", scale))
    ran = run(*ADOPT)
    assert ran.code == 1
    assert "missing: counter-3" in ran.err
    assert world.get("statefulsets")["spec"]["replicas"] == 4
    assert world.has("statefulsets")


@pytest.mark.usefixtures("hurry")
def test_without_an_operator_that_answers_the_statefulset_is_not_touched(world: World, run: Run) -> None:
    world.operator_runs = False
    before = world.get("statefulsets")
    ran = run(*ADOPT)
    assert ran.code == 1
    assert "waited 60 s until the operator answers" in ran.err
    assert (world.get("statefulsets"), world.cluster.written) == (before, [("POST", "streamapps")])


@pytest.mark.usefixtures("hurry")
def test_an_old_answer_of_an_operator_that_is_gone_does_not_count(world: World, run: Run) -> None:
    world.kafka = "False"
    ran = run(*ADOPT)
    assert ran.code == 1
    assert "until the operator reaches the brokers: no broker answers" in ran.err
    world.kafka, world.operator_runs = "True", False
    app = world.get("streamapps")
    conditions = [{**one, "status": "True"} for one in app["status"]["conditions"]]
    world.put("streamapps", {**app, "status": {**app["status"], "conditions": conditions}})
    again = run(*ADOPT)
    assert again.code == 1
    assert "until the operator answers" in again.err
    assert ("DELETE", "statefulsets") not in world.cluster.written


@pytest.mark.usefixtures("hurry")
def test_an_operator_that_goes_right_after_the_delete_leaves_the_pods_and_a_way_on(world: World, run: Run) -> None:
    before = world.uids()

    def stop(write: Write) -> None:
        if write.method == "DELETE":
            world.operator_runs = False

    world.cluster.do(lambda server: setattr(server, "fault", stop))
    ran = run(*ADOPT)
    assert ran.code == 1
    assert "until the operator creates the StatefulSet" in ran.err
    assert (world.has("statefulsets"), world.uids()) == (False, before)
    world.operator_runs = True
    world.put("pods", world.get("pods", "counter-0"))
    assert run(*ADOPT).code == 0
    assert world.uids() == before
    is_adopted(world)


def test_a_streamapp_that_asks_for_fewer_pods_is_refused(world: World, run: Run) -> None:
    made = yaml.safe_load(run("adopt", f"sts/{NAME}", "--dry-run").out)
    world.put("streamapps", {**made, "spec": {**made["spec"], "replicas": 1}})
    ran = run(*ADOPT)
    assert (ran.code, world.cluster.written) == (1, [])
    assert "spec.replicas is 1, the StatefulSet has 3" in ran.err


def test_a_streamapp_with_another_claim_is_refused(world: World, run: Run) -> None:
    made = yaml.safe_load(run("adopt", f"sts/{NAME}", "--dry-run").out)
    del made["spec"]["state"]["claimName"]
    world.put("streamapps", made)
    ran = run(*ADOPT)
    assert (ran.code, world.cluster.written) == (1, [])
    assert "StreamAppDiffers" in ran.err


def test_a_pause_of_the_user_is_respected_and_one_of_an_interrupted_run_ends(world: World, run: Run) -> None:
    made = yaml.safe_load(run("adopt", f"sts/{NAME}", "--dry-run").out)
    world.put("streamapps", {**made, "spec": {**made["spec"], "paused": True}})
    ran = run(*ADOPT)
    assert (ran.code, world.cluster.written) == (1, [])
    assert "kubectl streamapp resume counter -n demo" in ran.err
    marks = {**made["metadata"]["annotations"], ADOPTION_PAUSE: "true"}
    metadata = {**world.get("streamapps")["metadata"], "annotations": marks}
    world.put("streamapps", {**world.get("streamapps"), "metadata": metadata})
    assert run(*ADOPT).code == 0
    assert ADOPTION_PAUSE not in world.get("streamapps")["metadata"]["annotations"]
    is_adopted(world)


def test_an_origin_of_an_earlier_statefulset_is_written_anew(world: World, run: Run) -> None:
    made = yaml.safe_load(run("adopt", f"sts/{NAME}", "--dry-run").out)
    text = json.loads(made["metadata"]["annotations"][ADOPTED_FROM])
    made["metadata"]["annotations"][ADOPTED_FROM] = json.dumps({**text, "uid": "another"})
    world.put("streamapps", made)
    uid = world.get("statefulsets")["metadata"]["uid"]
    assert run(*ADOPT).code == 0
    assert json.loads(world.get("streamapps")["metadata"]["annotations"][ADOPTED_FROM]) == {**text, "uid": uid}


@pytest.mark.usefixtures("hurry")
def test_process_ids_that_are_not_recorded_yet_are_reported_and_fail_nothing(world: World, run: Run) -> None:
    world.records = False
    ran = run(*ADOPT)
    assert ran.code == 0
    assert "No process ID is on record yet for datadir-counter-0, datadir-counter-1, datadir-counter-2" in ran.out


def test_one_that_is_adopted_is_left_as_it_is(world: World, run: Run) -> None:
    assert run(*ADOPT).code == 0
    count = len(world.cluster.written)
    assert run(*ADOPT).code == 0
    assert len(world.cluster.written) == count


@pytest.mark.usefixtures("world")
def test_what_is_no_statefulset_is_refused(run: Run) -> None:
    assert run("adopt", "deployment/counter").code == 2
    gone = run("adopt", "statefulset/other", "--yes")
    assert (gone.code, "StatefulSet demo/other" in gone.err) == (1, True)


def test_without_yes_and_without_a_terminal_nothing_is_written(world: World, run: Run) -> None:
    ran = run("adopt", f"statefulset/{NAME}")
    assert (ran.code, world.cluster.written) == (1, [])
    assert "add --yes" in ran.err
