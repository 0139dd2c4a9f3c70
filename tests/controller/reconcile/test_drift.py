"""What another writer changes in the objects of a StreamApp is put back, and no pod goes before that."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from itertools import count, pairwise
from typing import Any

import pytest

from streamapp.kube.client.kinds import SERVICES
from tests.controller.doubles.bench import INSTALLATION, NAME, Bench, a_bench, a_stream_app
from tests.controller.doubles.fake_pods import NAMESPACE
from tests.kube.object_store import Request, clone

Json = dict[str, Any]


def on_a_bench(play: Callable[[Bench], Coroutine[Any, Any, None]], **spec: Any) -> None:
    """Play something on a bench whose application has four pods and is converged."""

    async def run() -> None:
        async with a_bench(4, **spec) as bench:
            await play(bench)

    asyncio.run(run())


def edit(bench: Bench, **spec: Any) -> None:
    """Change fields of the StatefulSet as another writer does."""
    live = clone(bench.statefulset())
    bench.server.put("statefulsets", {**live, "spec": {**live["spec"], **spec}})


def set_image(bench: Bench, image: str, **more: str) -> None:
    """What `kubectl set image` does."""
    template = clone(bench.statefulset()["spec"]["template"])
    template["spec"]["containers"][0] |= {"image": image, **more}
    edit(bench, template=template)


def application(bench: Bench) -> Json:
    """The application's container in the template."""
    return dict(bench.statefulset()["spec"]["template"]["spec"]["containers"][0])


def removals(bench: Bench) -> list[Json]:
    """The spec of the StatefulSet before each removal of a pod."""
    specs = [one.body["spec"] for one in bench.server.history if one.identity[0] == "statefulsets" and one.body]
    return [before for before, after in pairwise(specs) if after["replicas"] < before["replicas"]]


DELETE = {"whenScaled": "Delete", "whenDeleted": "Retain"}
RETAIN = {"whenScaled": "Retain", "whenDeleted": "Retain"}


@pytest.mark.guarantee(4)
def test_a_retention_policy_that_was_set_by_hand_is_put_back_before_a_pod_is_removed() -> None:
    async def play(bench: Bench) -> None:
        bench.desired(3)
        await bench.run(lambda: bench.record() is not None)
        edit(bench, persistentVolumeClaimRetentionPolicy=DELETE)
        await bench.run(lambda: bench.is_settled(3))
        (before,) = removals(bench)
        assert before["persistentVolumeClaimRetentionPolicy"] == RETAIN

    on_a_bench(play)


@pytest.mark.guarantee(4)
def test_no_pod_is_removed_while_the_retention_policy_cannot_be_put_back() -> None:
    def refuse(request: Request) -> tuple[int, str] | None:
        is_replicas = request.body.get("spec", {}).keys() == {"replicas"}
        return (403, "another policy denies it") if request.plural == "statefulsets" and not is_replicas else None

    async def play(bench: Bench) -> None:
        bench.desired(3)
        await bench.run(lambda: bench.record() is not None)
        edit(bench, persistentVolumeClaimRetentionPolicy=DELETE)
        bench.server.refuse_write = refuse
        for _ in range(60):
            bench.clock.move(2)
            await bench.make_pass()
        assert (bench.granted(), removals(bench)) == (4, [])
        assert bench.condition("ScaleDownHeld") == ("True", "StatefulSetChanged")
        bench.desired(6)
        await bench.make_pass()
        assert bench.granted() == 6, "a raise waits for none of it"

    on_a_bench(play)


def retention(bench: Bench) -> Json:
    """The retention policy of the StatefulSet."""
    return dict(bench.statefulset()["spec"]["persistentVolumeClaimRetentionPolicy"])


def give_up_claims(**changes: Any) -> Json:
    """The state of a StreamApp whose claims go with it, with these changes of its retention."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    policy = {"whenScaled": "Delete", "whenDeleted": "Delete", **changes}
    return {"mountPath": "/state", "volumeClaimTemplate": claim, "retention": policy}


def refuse_templates(request: Request) -> tuple[int, str] | None:
    """An admission policy that lets no template in, and what a patch of other fields leaves as it is."""
    is_template = request.plural == "statefulsets" and "template" in request.body.get("spec", {})
    return (403, "another policy denies it") if is_template else None


@pytest.mark.guarantee(4)
@pytest.mark.parametrize(
    ("refuse", "spec"),
    [
        pytest.param(None, {"paused": True}, id="in a pause"),
        pytest.param(refuse_templates, {"rollout": {"policy": "Paused"}}, id="while the template is refused"),
    ],
)
def test_claims_that_are_to_stay_do_so_although_no_template_is_written(refuse: Any, spec: Json) -> None:
    async def play(bench: Bench) -> None:
        bench.desired(4, **spec)
        await bench.make_pass()
        bench.server.refuse_write = refuse or (lambda _: None)
        template = clone(bench.statefulset()["spec"]["template"])
        bench.desired(4, state=give_up_claims(whenDeleted="Retain"))
        for _ in range(3):
            bench.clock.move(2)
            await bench.make_pass()
        assert retention(bench) == {"whenScaled": "Delete", "whenDeleted": "Retain"}
        assert bench.statefulset()["spec"]["template"] == template
        bench.server.refuse_write = lambda _: None
        bench.desired(4, paused=False, state=give_up_claims())
        await bench.run(lambda: retention(bench) == {"whenScaled": "Delete", "whenDeleted": "Delete"})

    on_a_bench(play, state=give_up_claims())


@pytest.mark.guarantee(4)
@pytest.mark.parametrize(
    ("is_dry_run", "kept"),
    [
        pytest.param(False, {"whenScaled": "Delete", "whenDeleted": "Retain"}, id="at once"),
        pytest.param(True, {"whenScaled": "Delete", "whenDeleted": "Delete"}, id="not in a dry run"),
    ],
)
def test_claims_that_are_to_stay_do_so_although_the_spec_is_invalid_elsewhere(is_dry_run: bool, kept: Json) -> None:
    async def play(bench: Bench) -> None:
        await bench.make_pass()
        template = clone(a_stream_app()["spec"]["template"])
        template["spec"]["initContainers"] = [{"name": "streamapp-seed", "image": "mine:1"}]
        bench.desired(4, template=template, dryRun=is_dry_run, state=give_up_claims(whenDeleted="Retain"))
        for _ in range(3):
            bench.clock.move(2)
            await bench.make_pass()
        assert bench.condition("Stalled") == ("True", "InvalidSpec")
        assert retention(bench) == kept

    on_a_bench(play, state=give_up_claims())


@pytest.mark.guarantee(4)
def test_a_pause_lets_no_claim_go_that_was_to_stay() -> None:
    async def play(bench: Bench) -> None:
        bench.desired(4, paused=True, state=give_up_claims())
        for _ in range(3):
            bench.clock.move(2)
            await bench.make_pass()
        assert retention(bench) == RETAIN

    on_a_bench(play)


def test_an_update_strategy_that_was_set_by_hand_is_put_back_by_the_next_pass() -> None:
    async def play(bench: Bench) -> None:
        edit(bench, updateStrategy={"type": "RollingUpdate"})
        bench.clock.move(2)
        await bench.make_pass()
        assert bench.statefulset()["spec"]["updateStrategy"] == {"type": "OnDelete"}
        assert (bench.granted(), bench.pods.deleted) == (4, [])
        events = [one.body for one in bench.server.history if one.identity[0] == "events" and one.body]
        assert events[-1]["reason"] == "StatefulSetDriftFound"
        assert "spec.updateStrategy: RollingUpdate" in events[-1]["note"]

    on_a_bench(play)


def test_an_update_strategy_is_put_back_while_a_step_is_open() -> None:
    async def play(bench: Bench) -> None:
        bench.desired(3)
        await bench.run(lambda: bench.granted() == 3)
        bench.group.is_reachable = False  # so that it stays open
        edit(bench, updateStrategy={"type": "RollingUpdate"})
        bench.clock.move(2)
        for _ in range(2):
            await bench.make_pass()
        assert bench.statefulset()["spec"]["updateStrategy"] == {"type": "OnDelete"}
        assert bench.record() is not None
        bench.group.is_reachable = True
        await bench.run(lambda: bench.is_settled(3))

    on_a_bench(play)


def test_an_image_that_was_set_on_the_statefulset_is_put_back() -> None:
    async def play(bench: Bench) -> None:
        set_image(bench, "app:by-hand")
        bench.clock.move(2)
        await bench.make_pass()
        assert application(bench)["image"] == "app:1"
        assert bench.granted() == 4

    on_a_bench(play)


def test_a_newer_operator_with_other_images_of_its_own_changes_no_template(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(bench: Bench) -> None:
        newer = replace(INSTALLATION, seed_image="seed:newer", agent_image="agent:newer")
        monkeypatch.setattr("tests.controller.doubles.bench.INSTALLATION", newer)
        before = clone(bench.statefulset()["spec"])
        await bench.restart()
        for _ in range(20):
            bench.clock.move(30)
            await bench.make_pass()
        assert bench.statefulset()["spec"] == before
        assert len(before["template"]["spec"]["initContainers"]) == 3

    pod = {"initContainers": [{"name": "mine", "image": "mine:1"}], "containers": [{"name": "app", "image": "app:1"}]}
    on_a_bench(play, template={"spec": pod})


def test_what_the_operator_never_wrote_is_left_to_who_wrote_it() -> None:
    async def play(bench: Bench) -> None:
        template = clone(bench.statefulset()["spec"]["template"])
        template["metadata"]["annotations"] = {"kubectl.kubernetes.io/restartedAt": "today"}
        edit(bench, template=template)
        before = len(bench.server.writes)
        for _ in range(20):
            bench.clock.move(30)
            await bench.make_pass()
        assert bench.statefulset()["spec"]["template"]["metadata"]["annotations"] == {
            "kubectl.kubernetes.io/restartedAt": "today"
        }
        assert [write for write in bench.server.writes[before:] if write.plural == "statefulsets"] == []

    on_a_bench(play, rollout={"policy": "Paused"})


def test_a_comparison_that_cannot_be_made_stops_nothing_and_is_made_again() -> None:
    async def play(bench: Bench) -> None:
        def refuse(request: Request) -> tuple[int, str] | None:
            return (400, "a webhook does not take dry runs") if request.query.get("dryRun") else None

        bench.server.refuse_write = refuse
        set_image(bench, "app:by-hand")
        for _ in range(5):
            bench.clock.move(30)
            assert await bench.make_pass()
        assert application(bench)["image"] == "app:by-hand"
        bench.server.refuse_write = lambda _: None
        await bench.run(lambda: application(bench)["image"] == "app:1", 600)

    on_a_bench(play)


def webhook(bench: Bench) -> list[float]:
    """Write another image at each request, dry runs too; give the times of the requests that were none."""
    sound, numbers, written = bench.server.answer, count(1), []

    def answer(request: Request, as_of: int | None = None) -> Json:
        if request.plural == "statefulsets" and "template" in request.body.get("spec", {}):
            body = clone(request.body)
            body["spec"]["template"]["spec"]["containers"][0]["image"] = f"mirror/app:{next(numbers)}"
            request = replace(request, body=body)
            if not request.query.get("dryRun"):
                written.append(bench.clock.monotonic())
        return sound(request, as_of)

    bench.server.answer = answer  # type: ignore[method-assign]
    return written


def test_a_field_to_which_a_webhook_gives_another_value_each_time_is_put_back_ever_more_rarely() -> None:
    async def play(bench: Bench) -> None:
        written = webhook(bench)
        set_image(bench, "app:by-hand")
        for _ in range(150):
            bench.clock.move(60)
            await bench.make_pass()
        pauses = [after - before for before, after in pairwise(written)]
        assert len(written) <= 5
        assert pauses == sorted(pauses)
        assert pauses[-1] > 1200

    on_a_bench(play, rollout={"policy": "Paused"})


def test_a_field_that_did_not_stay_is_put_back_when_its_pause_is_over() -> None:
    async def play(bench: Bench) -> None:
        for image in ("app:first", "app:second"):
            set_image(bench, image)
            await bench.run(lambda: application(bench)["image"] == "app:1", 100)

    on_a_bench(play, rollout={"policy": "Paused"})


def test_a_statefulset_at_rest_is_compared_once_in_five_minutes() -> None:
    async def play(bench: Bench) -> None:
        dry_runs: list[float] = []

        def count(request: Request) -> None:
            if request.query.get("dryRun"):
                dry_runs.append(bench.clock.monotonic())

        bench.server.refuse_write = count
        for _ in range(40):
            bench.clock.move(30)
            await bench.make_pass()
        assert 3 <= len(dry_runs) <= 5

    on_a_bench(play)


def test_ordinals_that_were_moved_hold_every_removal_and_are_left_as_they_are() -> None:
    async def play(bench: Bench) -> None:
        edit(bench, ordinals={"start": 1})
        bench.desired(3)
        for _ in range(30):
            bench.clock.move(5)
            await bench.make_pass()
        assert bench.granted() == 4
        assert bench.condition("ScaleDownHeld") == ("True", "OrdinalsShifted")
        assert bench.statefulset()["spec"]["ordinals"] == {"start": 1}

    on_a_bench(play)


def test_a_service_that_was_deleted_is_made_again_within_a_minute_or_two() -> None:
    async def play(bench: Bench) -> None:
        bench.server.remove(SERVICES.plural, NAMESPACE, NAME)
        await bench.run(lambda: bench.server.get(SERVICES.plural, NAMESPACE, NAME) is not None, 120)

    on_a_bench(play)


def test_a_service_that_was_changed_is_put_back() -> None:
    async def play(bench: Bench) -> None:
        made = bench.server.get(SERVICES.plural, NAMESPACE, NAME) or {}
        bench.server.put(SERVICES.plural, {**made, "spec": {**made["spec"], "publishNotReadyAddresses": False}})

        def is_back() -> bool:
            return bool((bench.server.get(SERVICES.plural, NAMESPACE, NAME) or {})["spec"]["publishNotReadyAddresses"])

        await bench.run(is_back, 120)

    on_a_bench(play)


def test_a_budget_that_was_changed_is_put_back() -> None:
    async def play(bench: Bench) -> None:
        made = bench.server.get("poddisruptionbudgets", NAMESPACE, NAME) or {}
        bench.server.put("poddisruptionbudgets", {**made, "spec": {**made["spec"], "maxUnavailable": 3}})
        await bench.run(lambda: bench.is_settled(4), 120)

    on_a_bench(play)


def test_a_pass_over_objects_that_are_right_only_reads_them() -> None:
    async def play(bench: Bench) -> None:
        await bench.make_pass()
        before = list(bench.server.writes)
        for _ in range(10):
            bench.clock.move(30)
            await bench.make_pass()
        assert bench.server.writes == before

    on_a_bench(play)
