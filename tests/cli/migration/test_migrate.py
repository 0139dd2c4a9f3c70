"""`migrate`: what it refuses, each stage, an interruption at every point with its resumption or return, autoscalers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cluster import NAMESPACE
from tests.cli.conftest import Ran, Run
from tests.cli.migrating import (
    CLASSIC,
    HPAS,
    NAME,
    STREAMS,
    TO_CLASSIC,
    TO_STREAMS,
    VARIABLE,
    World,
    an_autoscaler,
    interrupt_at,
    refused,
)
from tests.cli.showing import one_line
from tests.kube.api_server import ApiServer, Write


def test_all_pods_stop_then_the_template_is_written_then_as_many_start(
    running: World, migrate: Callable[..., Ran]
) -> None:
    stages: list[tuple[str, int, str]] = []

    def note(world: World) -> None:
        record = world.record
        stages.append(("none" if record is None else record["stage"], world.desired, world.env[VARIABLE]))

    running.on_tick = note
    ran = migrate(*TO_STREAMS)
    assert (ran.code, running.end) == (0, STREAMS), ran.err
    assert list(dict.fromkeys(stages)) == [("stop", 0, "classic"), ("switch", 0, "streams"), ("start", 3, "streams")]
    assert running.ran == [("streams", 3)]
    assert "wordcount: It runs with the streams protocol. Users waited " in ran.out


def test_each_stage_is_written_with_its_record_in_one_request(running: World, migrate: Callable[..., Ran]) -> None:
    assert migrate(*TO_STREAMS).code == 0
    assert running.cluster.written == [("PATCH", "streamapps")] * 4


def test_the_outage_is_from_the_stop_to_the_convergence_by_the_clock_of_the_operator(
    running: World, migrate: Callable[..., Ran]
) -> None:
    ran = migrate(*TO_STREAMS, "--output", "json")
    documents = ran.out
    stopped = running.steps[0]["at"]
    assert running.converged_at > running.now.fromisoformat(stopped)
    seconds = (running.converged_at - running.now.fromisoformat(stopped)).total_seconds()
    assert f'"outageSeconds": {seconds}' in documents


def test_the_way_back_is_the_same(world: World, migrate: Callable[..., Ran]) -> None:
    world.protocol = "streams"
    world.begin()
    ran = migrate("--back", *TO_CLASSIC)
    assert (ran.code, world.end, world.ran) == (0, CLASSIC, [("classic", 3)]), ran.err


@pytest.mark.parametrize("again", [(), ("--abort",)], ids=["resumed", "aborted"])
def test_an_interruption_at_any_look_is_continued_or_taken_back(
    running: World, migrate: Callable[..., Ran], again: tuple[str, ...]
) -> None:
    """One world, interrupted one look later each time, until a run comes through."""
    interrupted, stages = 0, set()
    while True:
        running.ticks = 0
        interrupt_at(running, interrupted + 1)
        ran = migrate(*TO_STREAMS)
        running.on_tick = lambda _: None
        if ran.code == 0:
            break
        assert ran.code == 130
        interrupted += 1
        assert running.record is not None
        stages.add(running.record["stage"])
        ran = migrate(*again)
        assert (ran.code, running.end) == (0, CLASSIC if again else STREAMS), (interrupted, ran.err)
        if not again:
            assert migrate("--back", *TO_CLASSIC).code == 0
    assert (interrupted, stages) == (5, {"stop", "switch", "start"})
    assert running.end == STREAMS


@pytest.mark.parametrize("cut", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 5))
def test_a_connection_that_is_lost_at_a_write_is_continued(
    running: World, migrate: Callable[..., Ran], cut: str, number: int
) -> None:
    def fault(write: Write) -> str | None:
        return cut if write.number == number else None

    running.cluster.do(lambda server: setattr(server, "fault", fault))
    first = migrate(*TO_STREAMS)
    assert first.code == 1
    assert "may have been made" in first.err
    if running.record is not None:
        assert (migrate().code, running.end) == (0, STREAMS)
    elif running.end != STREAMS:
        assert (migrate(*TO_STREAMS).code, running.end) == (0, STREAMS)


def test_an_abort_is_continued_too(running: World, migrate: Callable[..., Ran]) -> None:
    running.stays = {"convergence"}
    interrupt_at(running, 8)
    assert migrate(*TO_STREAMS).code == 130
    assert running.record is not None
    assert running.record["stage"] == "start"
    running.ticks = 0
    interrupt_at(running, 2)
    assert migrate("--abort").code == 130
    assert running.record["to"] == "classic"
    running.on_tick, running.stays = lambda _: None, set()
    assert (migrate().code, running.end) == (0, CLASSIC)


def test_nothing_is_switched_while_the_brokers_show_a_member(running: World, migrate: Callable[..., Ran]) -> None:
    running.stays = {"members"}
    ran = migrate(*TO_STREAMS, "--timeout", "20s")
    assert (ran.code, running.env[VARIABLE], running.ran) == (1, "classic", [])
    assert "no pod left, and the brokers show 3 members" in ran.err
    running.stays = set()
    assert (migrate("--abort").code, running.end) == (0, CLASSIC)


def test_no_pod_starts_before_the_template_is_written(running: World, migrate: Callable[..., Ran]) -> None:
    running.stays = {"template"}
    ran = migrate(*TO_STREAMS, "--timeout", "20s")
    assert (ran.code, running.desired, running.ran) == (1, 0, [])
    assert "waited 20s in stage switch" in one_line(ran.err)
    running.stays = set()
    assert (migrate().code, running.end) == (0, STREAMS)


def test_a_change_that_does_not_switch_is_found_when_the_pods_join(running: World, migrate: Callable[..., Ran]) -> None:
    running.ignores_template = True
    ran = migrate(*TO_STREAMS)
    assert ran.code == 1
    assert "the pods joined with the classic protocol" in one_line(ran.err)
    assert "--abort" in ran.err
    assert (migrate("--abort").code, running.end) == (0, CLASSIC)


def test_a_template_that_is_reverted_meanwhile_stops_it(running: World, migrate: Callable[..., Ran]) -> None:
    def revert(world: World) -> None:
        if world.record is not None and world.record["stage"] == "switch":
            body = world.app
            body["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = "classic"
            world.cluster.put(body)

    running.on_tick = revert
    running.stays = {"template"}
    ran = migrate(*TO_STREAMS)
    assert ran.code == 1
    assert "another writer changed the pod template" in one_line(ran.err)


def test_another_writer_that_raises_the_replicas_is_set_back(running: World, migrate: Callable[..., Ran]) -> None:
    def raise_once(world: World) -> None:
        if world.ticks == 1:
            body = world.app
            body["spec"]["replicas"] = 4
            body["metadata"]["generation"] += 1
            world.cluster.put(body)

    running.on_tick = raise_once
    assert (migrate(*TO_STREAMS).code, running.end) == (0, STREAMS)


def test_an_autoscaler_cannot_scale_up_until_it_is_over_and_is_as_before_then(
    running: World, migrate: Callable[..., Ran]
) -> None:
    running.there.put(HPAS, an_autoscaler())
    running.there.put(HPAS, an_autoscaler("other", "Min"))
    seen: list[tuple[str | None, str | None]] = []
    running.on_tick = lambda world: seen.append((world.policy(), world.policy("other")))
    ran = migrate(*TO_STREAMS)
    assert (ran.code, running.end) == (0, STREAMS), ran.err
    assert set(seen) == {("Disabled", "Disabled")}
    assert (running.policy(), running.policy("other")) == (None, "Min")


def test_an_abort_gives_an_autoscaler_back(running: World, migrate: Callable[..., Ran]) -> None:
    running.there.put(HPAS, an_autoscaler(policy="Max"))
    interrupt_at(running, 3)
    assert migrate(*TO_STREAMS).code == 130
    assert running.policy() == "Disabled"
    running.on_tick = lambda _: None
    assert (migrate("--abort").code, running.end, running.policy()) == (0, CLASSIC, "Max")


def test_an_autoscaler_of_keda_is_refused(running: World, migrate: Callable[..., Ran]) -> None:
    running.there.put(HPAS, an_autoscaler(ownerReferences=[{"kind": "ScaledObject", "name": "words"}]))
    refused(migrate(*TO_STREAMS), running, "KedaDrives")


def test_autoscalers_that_cannot_be_listed_are_refused_unless_the_user_knows(
    running: World, migrate: Callable[..., Ran]
) -> None:
    running.cluster.refuse(403, "you may not", path=HPAS)
    refused(migrate(*TO_STREAMS), running, "AutoscalersUnread")
    assert (migrate(*TO_STREAMS, "--despite-autoscaler").code, running.end) == (0, STREAMS)


@pytest.mark.parametrize(
    ("code", "facts", "changes"),
    [
        ("BrokersTooOld", {"support": False}, {}),
        ("OperatorSilent", {"support": None}, {}),
        ("BrokerReleaseUnknown", {"release": None}, {}),
        ("StaticMembers", {"static_members": 3}, {}),
        ("GroupMissing", {"protocol": "none", "members": 0, "ready": 3}, {}),
        ("NotSettled", {"ready": 2}, {}),
        ("NotSettled", {}, {"metadata__annotations": {"streamapp.dev/hold": "release"}}),
        ("NotSettled", {}, {"spec__dryRun": True}),
        ("PatternSubscribed", {}, {"spec__topology": "Source: A (topic pattern: words.*)"}),
        ("ManagedElsewhere", {}, {"metadata__annotations": {"argocd.argoproj.io/tracking-id": "x"}}),
        ("SpecInvalid", {}, {"spec__applicationId": ""}),
    ],
)
def test_it_refuses_before_it_writes(
    world: World, migrate: Callable[..., Ran], code: str, facts: dict[str, Any], changes: dict[str, Any]
) -> None:
    for name, value in facts.items():
        setattr(world, name, value)
    world.begin(**changes)
    refused(migrate(*TO_STREAMS), world, code)


def test_a_group_that_has_the_protocol_already_is_refused(world: World, migrate: Callable[..., Ran]) -> None:
    world.protocol = "streams"
    world.begin()
    refused(migrate("--env", "LEVEL=debug"), world, "ProtocolAlready")


def test_static_members_are_allowed_with_brokers_that_know_them(world: World, migrate: Callable[..., Ran]) -> None:
    world.static_members, world.release = 3, "4.4"
    world.begin()
    assert (migrate(*TO_STREAMS).code, world.end) == (0, STREAMS)


def test_an_operator_that_does_not_answer_is_an_obstacle(running: World, migrate: Callable[..., Ran]) -> None:
    running.there.answers.clear()
    refused(migrate(*TO_STREAMS), running, "OperatorSilent")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "no change of the template is given"),
        (("--env", f"{VARIABLE}=classic"), "the template says it already"),
        (("--env", "=x"), "is neither NAME=VALUE nor NAME-"),
        (("--abort",), "no migration is under way"),
    ],
)
def test_a_command_without_a_change_writes_nothing(
    running: World, migrate: Callable[..., Ran], arguments: tuple[str, ...], why: str
) -> None:
    ran = migrate(*arguments)
    assert (ran.code, running.cluster.written) == (1, [])
    assert why in one_line(ran.err)


def test_a_dry_run_shows_stages_and_price_and_writes_nothing(running: World, migrate: Callable[..., Ran]) -> None:
    ran = migrate(*TO_STREAMS, "--dry-run")
    told = one_line(ran.out)
    assert (ran.code, running.cluster.written) == (0, [])
    assert "stop The 3 pods stop together, after about 35s" in told
    assert "brokers below 4.4 assign tasks without regard to them: 4,000 records or more are restored" in told
    assert "All 6 tasks stop. Estimated outage: 7s to unknown, and the restore." in told
    assert told.endswith("Dry run: nothing was written.")


def test_a_dry_run_takes_the_start_of_the_present_pods_into_account(world: World, run: Run) -> None:
    running = world
    world.release = "4.4"
    world.begin()
    for ordinal in range(3):
        running.there.put("pods", a_ready_pod(ordinal, seconds=10 + ordinal))
    document = run("migrate", NAME, *TO_STREAMS, "--dry-run", "-o", "json").document
    assert (document["outageSecondsLeast"], document["outageSecondsMost"]) == (13, 61)
    assert (document["tasks"], document["statefulTasks"], document["recordsToRestore"]) == (6, 6, None)
    (container,) = [one for one in document["change"]["spec"]["containers"] if one["name"] == "app"]
    assert {"name": VARIABLE, "value": "streams"} in container["env"]


def a_ready_pod(ordinal: int, seconds: int) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": f"2026-11-21T12:00:{seconds:02}Z"}]
    return {
        "metadata": {
            "namespace": NAMESPACE,
            "name": f"{NAME}-{ordinal}",
            "labels": {"streamapp.dev/app": NAME},
            "creationTimestamp": "2026-11-21T12:00:00Z",
        },
        "status": {"phase": "Running", "conditions": conditions},
    }


def test_settings_that_no_longer_count_are_named(world: World, migrate: Callable[..., Ran]) -> None:
    world.begin()
    body = world.app
    env = body["spec"]["template"]["spec"]["containers"][0]["env"]
    env += [
        {"name": "STREAMS_NUM_STANDBY_REPLICAS", "value": "1"},
        {"name": "streams.session.timeout.ms", "value": "6000"},
    ]
    world.cluster.put(body)
    world._put_statefulset()
    told = one_line(migrate(*TO_STREAMS, "--dry-run").out)
    assert "num.standby.replicas=1 (group setting streams.num.standby.replicas)" in told
    assert "session.timeout.ms=6000 (group setting streams.session.timeout.ms)" in told
    assert "StandbysUnset" in told


def test_a_patch_in_a_file_meets_containers_by_name(
    running: World, migrate: Callable[..., Ran], tmp_path: Path
) -> None:
    file = tmp_path / "patch.yaml"
    change = f"{{name: app, image: 'words:2', env: [{{name: {VARIABLE}, value: streams}}]}}"
    file.write_text(f"spec: {{template: {{spec: {{containers: [{change}]}}}}}}")
    assert migrate("--patch", str(file)).code == 0
    first, second = running.app["spec"]["template"]["spec"]["containers"]
    assert (first["image"], running.env) == ("words:2", {VARIABLE: "streams", "LEVEL": "info"})
    assert second["name"] == "sidecar"


def test_a_patch_of_anything_but_the_template_is_refused(
    running: World, migrate: Callable[..., Ran], tmp_path: Path
) -> None:
    file = tmp_path / "patch.yaml"
    file.write_text("spec: {replicas: 5, template: {}}")
    ran = migrate("--patch", str(file))
    assert (ran.code, running.cluster.written) == (1, [])
    assert "it must change spec.template alone, and it has spec.replicas" in one_line(ran.err)


def test_status_and_explain_say_that_it_is_under_way(running: World, migrate: Callable[..., Ran], run: Run) -> None:
    interrupt_at(running, 1)
    assert migrate(*TO_STREAMS).code == 130
    what = "A migration is under way, to the streams protocol: stage stop."
    assert what in one_line(run("status", NAME).out)
    explained = one_line(run("explain", NAME).out)
    assert what in explained
    assert f"kubectl streamapp migrate {NAME} --abort" in explained


def test_a_second_migration_does_not_replace_the_one_under_way(running: World, migrate: Callable[..., Ran]) -> None:
    interrupt_at(running, 2)
    assert migrate(*TO_STREAMS).code == 130
    running.on_tick, before = (lambda _: None), running.record
    for arguments in (TO_STREAMS, ("--back",)):
        ran = migrate(*arguments)
        assert (ran.code, running.record) == (1, before)
        assert "under way" in ran.err


def test_a_record_that_cannot_be_read_is_left_alone(world: World, migrate: Callable[..., Ran]) -> None:
    world.begin(metadata__annotations={"streamapp.dev/migration": '{"version":2}'})
    ran = migrate(*TO_STREAMS)
    assert (ran.code, world.cluster.written) == (1, [])
    assert "its record cannot be read" in one_line(ran.err)


def test_a_change_of_the_spec_after_the_plan_was_shown_is_not_overwritten(
    running: World, migrate: Callable[..., Ran]
) -> None:
    def scale(server: ApiServer) -> None:
        body = server.get("streamapps", NAMESPACE, NAME)
        assert body is not None
        server.put("streamapps", {**body, "spec": {**body["spec"], "replicas": 5}})

    running.cluster.before_write(scale)
    ran = migrate(*TO_STREAMS)
    assert (ran.code, running.desired, running.record) == (1, 5, None)
    assert "another writer changed the StreamApp meanwhile" in one_line(ran.err)


def test_without_a_yes_nothing_is_written(running: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert (run("migrate", NAME, *TO_STREAMS).code, running.cluster.written) == (1, [])
