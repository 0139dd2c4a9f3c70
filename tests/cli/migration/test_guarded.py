"""`migrate` beside other hands: templates, volumes, autoscalers and clocks by which it would undo or lose something."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from streamapp.api.http.messages import group_path
from streamapp.cli.screens import watch
from tests.cli.cluster import NAMESPACE
from tests.cli.conftest import Ran
from tests.cli.migrating import (
    CLASSIC,
    HPAS,
    NAME,
    REPLICAS,
    STREAMS,
    TO_STREAMS,
    Json,
    World,
    an_autoscaler,
    interrupt_at,
    refused,
)
from tests.cli.showing import one_line

Migrate = Callable[..., Ran]
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def a_state(when_scaled: str) -> Json:
    return {"mountPath": "/state", "volumeClaimTemplate": CLAIM, "retention": {"whenScaled": when_scaled}}


def change(world: World, **spec: Any) -> None:
    """Another writer lays something over the spec."""
    body = world.app
    body["spec"] |= spec
    body["metadata"]["generation"] += 1
    world.cluster.put(body)


def test_volumes_that_would_go_with_the_pods_stand_in_the_way(world: World, migrate: Migrate) -> None:
    world.begin(spec__state=a_state("Delete"))
    refused(migrate(*TO_STREAMS), world, "VolumesDeleted")


def test_volumes_that_would_go_are_seen_also_while_the_pods_stop(world: World, migrate: Migrate) -> None:
    world.begin(spec__state=a_state("Retain"))
    world.stays = {"pods"}

    def delete(world: World) -> None:
        if world.ticks == 2:
            change(world, state=a_state("Delete"), replicas=REPLICAS)

    world.on_tick = delete
    ran = migrate(*TO_STREAMS)
    assert (ran.code, world.desired) == (1, REPLICAS)
    assert "`state.retention.whenScaled` is Delete now" in one_line(ran.err)


def test_a_template_that_changes_while_the_pods_stop_is_not_overwritten(running: World, migrate: Migrate) -> None:
    def deploy(world: World) -> None:
        if world.ticks == 1:
            template = world.app["spec"]["template"]
            template["spec"]["containers"][0]["image"] = "words:3"
            change(world, template=template)

    running.on_tick = deploy
    ran = migrate(*TO_STREAMS)
    assert (ran.code, running.record is not None) == (1, True)
    assert "another writer changed the pod template after the migration began" in one_line(ran.err)
    running.on_tick = lambda _: None
    assert migrate("--abort").code == 0
    assert (running.end, running.app["spec"]["template"]["spec"]["containers"][0]["image"]) == (CLASSIC, "words:3")


def deployed(world: World, **changes: str) -> None:
    """Another writer sets the image, or variables, of the application."""
    template = world.app["spec"]["template"]
    container = template["spec"]["containers"][0]
    container["image"] = changes.pop("image", container["image"])
    known = {one["name"]: one for one in container["env"]}
    known |= {name: {"name": name, "value": value} for name, value in changes.items()}
    container["env"] = list(known.values())
    change(world, template=template)


def stopped_in(world: World, migrate: Migrate, stage: str) -> None:
    """A migration that was interrupted in a stage after the template was written."""
    world.stays = {"template" if stage == "switch" else "convergence"}

    def interrupt(world: World) -> None:
        if world.record is not None and world.record["stage"] == stage:
            raise KeyboardInterrupt

    world.on_tick = interrupt
    assert migrate(*TO_STREAMS).code == 130
    world.on_tick, world.stays = lambda _: None, set()


@pytest.mark.parametrize("stage", ["switch", "start"])
def test_an_abort_keeps_what_another_writer_changed_after_the_switch(
    running: World, migrate: Migrate, stage: str
) -> None:
    stopped_in(running, migrate, stage)
    deployed(running, image="words:3", ADDED="yes")
    ran = migrate("--abort")
    template = running.app["spec"]["template"]["spec"]["containers"][0]
    assert (ran.code, template["image"], running.protocol) == (0, "words:3", "classic"), ran.err
    assert running.env == {"GROUP_PROTOCOL": "classic", "LEVEL": "info", "ADDED": "yes"}
    assert (running.record, running.pods) == (None, REPLICAS)


@pytest.mark.parametrize("stage", ["switch", "start"])
def test_an_abort_refuses_to_overwrite_what_it_would_take_back(running: World, migrate: Migrate, stage: str) -> None:
    stopped_in(running, migrate, stage)
    deployed(running, GROUP_PROTOCOL="other")
    before = running.app
    written = len(running.cluster.written)
    for arguments in (("--abort",), ("--abort", "--dry-run")):
        ran = migrate(*arguments)
        assert ran.code == 1
        assert "spec.template.spec.containers[app].env[GROUP_PROTOCOL]" in one_line(ran.err)
    assert (running.app, len(running.cluster.written)) == (before, written)
    deployed(running, GROUP_PROTOCOL="streams")
    assert (migrate("--abort").code, running.end) == (0, CLASSIC)


def test_an_abort_compares_again_when_the_pods_have_stopped(running: World, migrate: Migrate) -> None:
    stopped_in(running, migrate, "start")

    def deploy(world: World) -> None:
        if world.record is not None and world.record["abort"] and world.env["GROUP_PROTOCOL"] == "streams":
            deployed(world, image="words:4", GROUP_PROTOCOL="other")

    running.on_tick = deploy
    ran = migrate("--abort")
    assert (ran.code, running.env["GROUP_PROTOCOL"], running.desired) == (1, "other", 0)
    assert "another writer changed what the migration wrote" in one_line(ran.err)
    running.on_tick = lambda _: None
    deployed(running, GROUP_PROTOCOL="classic")
    assert (migrate().code, running.end) == (0, CLASSIC)
    assert running.app["spec"]["template"]["spec"]["containers"][0]["image"] == "words:4"


def test_an_abort_of_what_another_writer_took_back_already_waits_for_no_other_template(
    running: World, migrate: Migrate
) -> None:
    stopped_in(running, migrate, "start")
    deployed(running, GROUP_PROTOCOL="classic")
    running._put_statefulset()  # the operator writes before the user comes back
    ran = migrate("--abort", "--timeout", "30s")
    assert (ran.code, running.end) == (0, CLASSIC), ran.err


def test_a_template_that_is_written_again_after_an_abort_is_taken_back_when_the_user_says_so(
    running: World, migrate: Migrate
) -> None:
    stopped_in(running, migrate, "switch")
    running.stays = {"template"}
    written: list[int] = []

    def reapply(world: World) -> None:
        if world.record is not None and world.record["abort"] and not written:
            written.append(world.ticks)
            deployed(world, GROUP_PROTOCOL="streams")

    running.on_tick = reapply
    ran = migrate("--abort")
    assert (ran.code, running.env["GROUP_PROTOCOL"]) == (1, "streams")
    assert "another writer changed the pod template" in one_line(ran.err)
    running.stays = set()
    assert (migrate("--abort").code, running.end) == (0, CLASSIC)


def test_an_autoscaler_that_cannot_be_read_at_the_end_is_waited_for(running: World, migrate: Migrate) -> None:
    running.there.put(HPAS, an_autoscaler(policy="Max"))
    told: list[str | None] = []

    def refuse(world: World) -> None:
        if world.record is not None and world.record["stage"] == "start":
            told.append(world.policy())
            if len(told) < 8:
                world.cluster.refuse(403, "you may not", path=HPAS)
            else:
                world.cluster.accept()

    running.on_tick = refuse
    ran = migrate(*TO_STREAMS)
    assert (ran.code, running.end, running.policy()) == (0, STREAMS, "Max"), ran.err
    assert set(told) == {"Disabled"}
    assert "HorizontalPodAutoscaler cpu cannot be read: you may not" in one_line(ran.err)


@pytest.mark.parametrize("ahead", [timedelta(minutes=45), -timedelta(minutes=45)], ids=["ahead", "behind"])
def test_a_wrong_clock_of_the_users_machine_changes_nothing(
    running: World, migrate: Migrate, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    monkeypatch.setattr(watch, "now", lambda: running.now + ahead)
    ran = migrate(*TO_STREAMS, "--output", "json")
    assert (ran.code, running.end) == (0, STREAMS), ran.err
    seconds = (running.converged_at - running.now.fromisoformat(running.steps[0]["at"])).total_seconds()
    assert f'"outageSeconds": {seconds}' in ran.out


def test_a_run_that_another_machine_continues_compares_the_same_clock(
    running: World, migrate: Migrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "now", lambda: running.now + timedelta(minutes=45))
    interrupt_at(running, 5)
    assert migrate(*TO_STREAMS).code == 130
    monkeypatch.setattr(watch, "now", lambda: running.now)
    running.on_tick = lambda _: None
    assert (migrate().code, running.end) == (0, STREAMS)


def test_a_stage_that_was_dated_while_the_operator_was_silent_is_not_waited_for(
    running: World, migrate: Migrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine 45 minutes ahead goes on with the migration, and cannot ask the operator before the last stage."""
    monkeypatch.setattr(watch, "now", lambda: running.now + timedelta(minutes=45))
    interrupt_at(running, 3)
    assert migrate(*TO_STREAMS).code == 130
    assert running.record is not None
    assert running.record["stage"] == "switch"
    first = running.ticks

    def silent(world: World) -> None:
        is_over = world.record is not None and world.record["stage"] == "start" and world.ticks > first + 4
        world.is_silent = not is_over

    running.on_tick, running.is_silent = silent, True
    running.there.answers.pop(group_path(NAMESPACE, NAME))
    ran = migrate("--timeout", "60s")
    assert (ran.code, running.end) == (0, STREAMS), ran.err
    assert running.ticks < first + 20


def a_patch(folder: Path, container: str) -> str:
    file = folder / "patch.yaml"
    file.write_text(f"spec: {{template: {{spec: {{containers: [{container}]}}}}}}")
    return str(file)


def no_pod_of(world: World, is_refused: Callable[[Json], bool], status: int = 422) -> list[Json]:
    """Have the API server refuse such a Pod; give the Pods that it was asked about, all of them by a dry run."""
    asked: list[Json] = []

    def answer(received: web.Request, body: Json) -> web.Response | None:
        if received.method != "POST" or not received.path.endswith("/pods"):
            return None
        assert received.query["dryRun"] == "All"
        asked.append(body)
        said = {"message": "Pod is invalid: spec.containers[0].env[0].value"} if is_refused(body) else body
        return web.json_response(said, status=status if is_refused(body) else 201)

    world.cluster.do(lambda server: setattr(server, "elsewhere", answer))
    return asked


def has_number(pod: Json) -> bool:
    return any(isinstance(one.get("value"), int) for each in pod["spec"]["containers"] for one in each.get("env", []))


def test_a_template_that_no_pod_can_be_made_of_is_refused_before_any_pod_stops(
    running: World, migrate: Migrate, tmp_path: Path
) -> None:
    asked = no_pod_of(running, has_number)
    ran = migrate("--patch", a_patch(tmp_path, "{name: app, env: [{name: LEVEL, value: 5}]}"))
    assert (ran.code, running.cluster.written, running.record) == (1, [], None)
    assert "no pod could be made of it: Pod is invalid" in one_line(ran.err)
    assert [has_number(pod) for pod in asked] == [True, False]


@pytest.mark.parametrize("status", [403, 422])
def test_an_answer_that_is_the_same_for_the_present_template_stands_in_no_way(
    running: World, migrate: Migrate, status: int
) -> None:
    asked = no_pod_of(running, lambda _: True, status)
    assert (migrate(*TO_STREAMS).code, running.end, len(asked)) == (0, STREAMS, 2)


def test_a_template_that_makes_the_streamapp_invalid_is_refused(
    running: World, migrate: Migrate, tmp_path: Path
) -> None:
    asked = no_pod_of(running, lambda _: False)
    file = tmp_path / "patch.yaml"
    file.write_text("spec: {template: {spec: {containers: null}}}")
    ran = migrate("--patch", str(file))
    assert (ran.code, running.cluster.written, asked) == (1, [], [])
    assert "no pod could be made of it" in one_line(ran.err)


APP = "containers: [{name: app, volumeMounts: [{name: tmp, mountPath: %s}]}], volumes: [{name: tmp, emptyDir: {}}]"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("spec: {containers: [{name: ap, env: [{name: A, value: b}]}]}", "containers ap is new and has no image"),
        ("spec: {initContainers: [{name: first}]}", "initContainers first is new and has no image"),
        (
            "spec: {containers: [{name: app, $patch: delete}]}",
            "spec.container must be the name of a container in template.spec.containers",
        ),
        ("spec: {volumes: [{name: state, emptyDir: {}}]}", "must not have one called state"),
        ("metadata: {labels: {streamapp.dev/app: other}}", "which is the StreamApp's name"),
        ("spec: {%s}" % (APP % "/state"), "must not mount tmp at /state"),
        ("spec: {%s}" % (APP % "/state/streams/"), "tmp at /state/streams would hide state on the volume at /state"),
        ("spec: {%s}" % (APP % "/"), "tmp at / would hide state on the volume at /state"),
        ("{}", "no change of the template is given"),
        ("spec: {containers: []}", "no change of the template is given"),
    ],
)
def test_a_patch_that_no_pod_could_start_with_or_that_takes_its_state_stops_no_pod(
    world: World, migrate: Migrate, tmp_path: Path, change: str, fault: str
) -> None:
    """Also for a user who may not create Pods, of whom the API server says nothing about the new template."""
    world.begin(spec__state=a_state("Retain"))
    no_pod_of(world, lambda _: True, 403)
    file = tmp_path / "patch.yaml"
    file.write_text(f"spec: {{template: {{{change}}}}}" if change != "{}" else "spec: {template: {}}")
    ran = migrate("--patch", str(file))
    assert (ran.code, world.cluster.written, world.record, world.desired) == (1, [], None, REPLICAS)
    assert fault in one_line(ran.err)


def test_a_mount_beside_the_state_and_a_new_container_with_an_image_are_fine(
    world: World, migrate: Migrate, tmp_path: Path
) -> None:
    world.begin(spec__state=a_state("Retain"))
    file = tmp_path / "patch.yaml"
    file.write_text(
        "spec: {template: {spec: {volumes: [{name: tmp, emptyDir: {}}], containers: [{name: app, volumeMounts: "
        "[{name: tmp, mountPath: /stately}]}, {name: proxy, image: 'proxy:1'}]}}}"
    )
    assert (migrate("--patch", str(file), *TO_STREAMS).code, world.protocol) == (0, "streams")
