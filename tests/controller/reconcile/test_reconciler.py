"""Passes over one application: what a fault in one place must not do in another."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from structlog.typing import EventDict

from streamapp.api.names import FENCE, HOLD_GENERATION, HOLD_RECORD, MIGRATION
from streamapp.controller.reconcile.apply import Applier
from streamapp.controller.reconcile.gather import Gathered
from streamapp.core.facts.group import StandbySetting
from streamapp.core.facts.hold_annotation import decode, encode
from streamapp.core.facts.hold_record import Epoch, HoldRecord, RaisedStandbys, RaiseState
from streamapp.core.facts.lag import Unknown
from tests.controller.doubles.bench import KEY, NAME, Bench, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE
from tests.kube.api_server import Write
from tests.support.example import END, NOW, task_set


def on_a_bench(play: Callable[[Bench], Coroutine[Any, Any, None]], **spec: Any) -> None:
    """Play something on a bench whose application has four pods and is converged."""

    async def run() -> None:
        async with a_bench(4, **spec) as bench:
            await play(bench)

    asyncio.run(run())


def written(bench: Bench, since: int) -> list[str]:
    """The writes since then, in words."""
    return [f"{write.method} {write.plural}/{write.subresource}" for write in bench.server.writes[since:]]


def test_a_pass_over_an_application_at_rest_writes_nothing() -> None:
    async def play(bench: Bench) -> None:
        for _ in range(3):
            bench.clock.move(30)
            await bench.make_pass()
        before = len(bench.server.writes)
        for _ in range(5):
            bench.clock.move(30)
            assert await bench.make_pass()
        assert written(bench, before) == []

    on_a_bench(play)


@pytest.mark.guarantee(3)
def test_growth_is_the_first_write_of_the_first_pass_whatever_kafka_says() -> None:
    async def play(bench: Bench) -> None:
        bench.group.is_reachable = False
        bench.desired(6)
        before = len(bench.server.writes)
        await bench.make_pass()
        assert bench.granted() == 6
        assert written(bench, before)[0] == "PATCH statefulsets/"

    on_a_bench(play)


@pytest.mark.guarantee(2)
def test_nothing_is_removed_while_the_brokers_do_not_answer() -> None:
    async def play(bench: Bench) -> None:
        bench.group.is_reachable = False
        bench.desired(3)
        for _ in range(60):
            bench.clock.move(5)
            await bench.make_pass()
        assert bench.granted() == 4
        assert bench.condition("ScaleDownHeld") == ("True", "BrokersUnreachable")
        assert bench.condition("KafkaReachable") == ("False", "BrokersUnreachable")

    on_a_bench(play)


@pytest.mark.guarantee(1)
def test_nothing_is_removed_while_the_copies_are_behind() -> None:
    async def play(bench: Bench) -> None:
        bench.group.lag = 500_000
        bench.desired(3)
        for _ in range(60):
            bench.clock.move(5)
            await bench.make_pass()
        assert (bench.granted(), bench.wrongs) == (4, [])
        assert bench.condition("ScaleDownHeld") == ("True", "LearnersCatchingUp")
        bench.group.lag = 0
        await bench.run(lambda: bench.is_settled(3), 600)

    on_a_bench(play)


def test_a_copy_that_stands_still_before_markers_and_aborted_records_is_caught_up() -> None:
    async def play(bench: Bench) -> None:
        bench.group.lag = 500_000
        bench.group.data_end = END - 500_000
        bench.desired(3)
        await bench.run(lambda: bench.is_settled(3), 600)
        (look, *more) = bench.group.looks
        assert look == task_set().changelogs
        assert more == []

    on_a_bench(play)


def test_nothing_is_removed_while_the_tails_cannot_be_read() -> None:
    async def play(bench: Bench) -> None:
        bench.group.lag = 500_000
        bench.group.data_end = Unknown("grant READ on topic counter-changelog")
        bench.desired(3)
        for _ in range(60):
            bench.clock.move(5)
            await bench.make_pass()
        assert bench.granted() == 4
        assert bench.condition("ScaleDownHeld") == ("True", "LagUnknown")
        assert 0 < len(bench.group.looks) <= bench.group.rebalances

    on_a_bench(play)


def test_nobody_looks_at_tails_while_every_copy_is_within_the_limit() -> None:
    async def play(bench: Bench) -> None:
        bench.desired(3)
        await bench.run(lambda: bench.is_settled(3), 600)
        assert bench.group.rebalances > 0
        assert bench.group.looks == []

    on_a_bench(play)


@pytest.mark.guarantee(2)
def test_a_new_process_writes_its_own_epoch_into_the_record_before_anything_else() -> None:
    async def play(bench: Bench) -> None:
        bench.group.lag = 500_000
        bench.desired(3)
        await bench.run(lambda: bench.record() is not None)
        old = decode(bench.record() or "")
        await bench.restart()
        before = len(bench.server.writes)
        bench.clock.move(1)
        await bench.make_pass()
        new = decode(bench.record() or "")
        assert isinstance(old, HoldRecord)
        assert isinstance(new, HoldRecord)
        assert new.epoch > old.epoch
        assert (new.hold, new.step) == (old.hold, old.step)
        assert written(bench, before) == ["PATCH statefulsets/"]

    on_a_bench(play)


def holds(bench: Bench) -> list[str]:
    """The ID of the hold on record, and what stands beside the record."""
    found = decode(bench.record() or "")
    assert isinstance(found, HoldRecord)
    assert found.hold is not None
    return [found.hold.id, bench.statefulset()["metadata"]["annotations"][HOLD_GENERATION]]


def generation(bench: Bench) -> int:
    """Of the StreamApp."""
    app = bench.server.get("streamapps", NAMESPACE, NAME) or {}
    return int(app["metadata"]["generation"])


@pytest.mark.guarantee(2)
def test_a_new_process_does_not_continue_a_hold_that_was_called_off_while_none_ran() -> None:
    async def play(bench: Bench) -> None:
        bench.group.lag = 500_000
        bench.desired(3)
        await bench.run(lambda: bench.record() is not None)
        first, beside = holds(bench)
        assert beside == f"{first} {generation(bench)}"
        await bench.restart()
        await bench.run(lambda: bench.condition("ScaleDownHeld") == ("True", "LearnersCatchingUp"))
        assert holds(bench) == [first, beside]
        await bench.stop()
        bench.desired(4)
        bench.desired(3)
        await bench.restart()
        await bench.run(lambda: bench.record() is not None and holds(bench)[0] != first)
        assert holds(bench)[1] == f"{holds(bench)[0]} {generation(bench)}"
        assert bench.granted() == 4

    on_a_bench(play)


def test_a_record_of_an_earlier_version_is_continued_and_says_the_generation_from_then_on() -> None:
    async def play(bench: Bench) -> None:
        bench.group.lag = 500_000
        bench.desired(3)
        await bench.run(lambda: bench.record() is not None)
        first, beside = holds(bench)
        live = bench.statefulset()
        annotations = {name: text for name, text in live["metadata"]["annotations"].items() if name != HOLD_GENERATION}
        bench.server.put("statefulsets", {**live, "metadata": {**live["metadata"], "annotations": annotations}})
        await bench.restart()
        await bench.run(lambda: HOLD_GENERATION in bench.statefulset()["metadata"]["annotations"])
        assert holds(bench) == [first, beside]

    on_a_bench(play)


@pytest.mark.guarantee(2)
def test_a_new_process_fences_a_record_that_it_cannot_read_and_goes_on_once_it_can() -> None:
    """As when an older release takes over: what the former process can read, it can have judged a removal by."""

    async def play(bench: Bench) -> None:
        bench.group.lag = 500_000
        bench.desired(3)
        await bench.run(lambda: bench.record() is not None)
        legible = bench.record() or ""
        garbled = legible.replace('"version":1', '"version":2')
        bench.server.put("statefulsets", with_record(bench, garbled))
        await bench.restart()
        judged_before = bench.statefulset()["metadata"]["resourceVersion"]
        bench.clock.move(1)
        await bench.make_pass()
        assert bench.statefulset()["metadata"]["resourceVersion"] != judged_before
        assert (bench.record(), bench.granted()) == (garbled, 4)
        await bench.run(lambda: bench.condition("ScaleDownHeld") == ("True", "HoldRecordUnreadable"))
        beside = bench.statefulset()["metadata"]["resourceVersion"]
        for _ in range(20):
            bench.clock.move(5)
            await bench.make_pass()
        assert bench.statefulset()["metadata"]["resourceVersion"] == beside
        bench.server.put("statefulsets", with_record(bench, legible))
        bench.group.lag = 0
        await bench.make_pass()
        old, new = decode(legible), decode(bench.record() or "")
        assert isinstance(old, HoldRecord)
        assert isinstance(new, HoldRecord)
        assert (new.epoch > old.epoch, new.hold) == (True, old.hold)
        assert FENCE not in bench.statefulset()["metadata"]["annotations"]
        await bench.run(lambda: bench.is_settled(3))
        assert bench.wrongs == []

    on_a_bench(play)


def test_a_removal_is_not_sent_when_the_wish_rises_after_the_judgement() -> None:
    async def play(bench: Bench) -> None:
        def rise(write: Write) -> None:
            # Closing the budget is the last write before the removal.
            if write.plural == "poddisruptionbudgets":
                bench.desired(4)

        bench.desired(3)
        await bench.run(lambda: bench.record() is not None)
        bench.server.fault = rise
        await bench.run(lambda: bench.is_settled(4))
        assert (bench.granted(), bench.wrongs, bench.pods.deleted) == (4, [], [])

    on_a_bench(play)


@pytest.mark.guarantee(1)
def test_all_pods_do_not_stop_together_for_a_migration_that_is_called_off_after_the_judgement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(bench: Bench) -> None:
        def migration(text: str | None) -> None:
            app = bench.server.get("streamapps", NAMESPACE, NAME) or {}
            annotations = {} if text is None else {MIGRATION: text}
            bench.server.put("streamapps", {**app, "metadata": {**app["metadata"], "annotations": annotations}})

        sound = Applier._check_again

        async def call_off(applier: Applier, gathered: Gathered, to_replicas: int | None) -> None:
            migration(None)
            await sound(applier, gathered, to_replicas)

        monkeypatch.setattr(Applier, "_check_again", call_off)
        migration("{}")
        bench.desired(0, scaleDown={"allowZero": True})
        await bench.run(lambda: bench.granted() < 4)
        assert bench.granted() == 3

    on_a_bench(play)


def test_a_removal_is_not_sent_on_a_judgement_that_has_grown_old() -> None:
    async def play(bench: Bench) -> None:
        waited: list[int] = []

        def wait(write: Write) -> None:
            if write.plural == "poddisruptionbudgets" and len(waited) < 2:
                waited.append(write.number)
                bench.clock.move(11)

        bench.desired(3)
        await bench.run(lambda: bench.record() is not None)
        bench.server.fault = wait
        await bench.run(lambda: bool(waited))
        assert bench.granted() == 4
        await bench.run(lambda: bench.is_settled(3))
        assert bench.wrongs == []

    on_a_bench(play)


def test_the_budget_stays_closed_although_the_spec_changed_just_before_the_removal() -> None:
    async def play(bench: Bench) -> None:
        bench.desired(3)
        await bench.run(lambda: bench.record() is not None)
        for number in range(120):
            # Every pass sees a generation of its own, as under an autoscaler that writes all the time.
            bench.desired(3, scaleDown={"stabilizationWindow": f"{1 + number % 2}s"})
            bench.clock.move(2)
            await bench.make_pass()
            if bench.granted() == 3:
                break
        assert bench.granted() == 3
        budget = bench.server.get("poddisruptionbudgets", NAMESPACE, NAME) or {}
        assert budget["spec"]["maxUnavailable"] == 0

    on_a_bench(play)


def test_a_statefulset_of_somebody_else_is_left_alone() -> None:
    async def play(bench: Bench) -> None:
        theirs = bench.statefulset()
        theirs["metadata"]["ownerReferences"] = [{"uid": "somebody", "controller": True}]
        bench.server.put("statefulsets", theirs)
        bench.desired(6)
        before = len(bench.server.writes)
        for _ in range(3):
            bench.clock.move(5)
            await bench.make_pass()
        assert bench.granted() == 4
        assert bench.condition("Stalled") == ("True", "ForeignStatefulSet")
        assert {write.plural for write in bench.server.writes[before:]} == {"streamapps", "events"}

    on_a_bench(play)


def test_a_statefulset_that_is_adopted_by_half_is_left_alone_and_its_pods_are_taken_when_it_lets_them_go() -> None:
    """What `kubectl streamapp adopt` rests on (docs/decisions/0010): fewer replicas are desired, and no pod goes."""

    async def play(bench: Bench) -> None:
        theirs, before = bench.statefulset(), {pod.container_id for pod in bench.pods.running()}
        theirs["metadata"] |= {"ownerReferences": [], "labels": {"streamapp.dev/app": NAME}}
        bench.server.put("statefulsets", theirs)
        bench.desired(2)
        writes = len(bench.server.writes)
        for _ in range(3):
            bench.clock.move(60)
            await bench.make_pass()
        assert {write.plural for write in bench.server.writes[writes:]} == {"streamapps", "events"}
        bench.server.objects.pop(("statefulsets", NAMESPACE, NAME))
        await bench.restart()  # no memory is needed
        await bench.make_pass()
        assert (bench.granted(), bench.pods.deleted) == (4, [])
        assert {pod.container_id for pod in bench.pods.running()} == before
        assert [owner["kind"] for owner in bench.statefulset()["metadata"]["ownerReferences"]] == ["StreamApp"]

    on_a_bench(play)


def test_a_changed_template_is_written_without_touching_the_replicas() -> None:
    async def play(bench: Bench) -> None:
        bench.desired(4, template={"spec": {"containers": [{"name": "app", "image": "app:2"}]}})
        bench.clock.move(2)
        await bench.make_pass()
        assert bench.statefulset()["spec"]["template"]["spec"]["containers"][0]["image"] == "app:2"
        assert bench.granted() == 4

    on_a_bench(play)


def test_a_container_that_was_killed_is_put_out_of_the_group_and_nobody_else_is() -> None:
    async def play(bench: Bench) -> None:
        for _ in range(9):  # its containers ran before: how far the node's clock is ahead is unknown
            bench.clock.move(10)
            await bench.make_pass()
        before = set(bench.group.members)
        bench.pods.kill(2)
        bench.clock.move(1)
        await bench.make_pass()
        assert len(before - set(bench.group.members)) == 1
        await bench.run(lambda: bench.is_settled(4))
        assert bench.group.wrongs == []

    on_a_bench(play)


def test_a_streamapp_that_is_gone_is_forgotten() -> None:
    async def play(bench: Bench) -> None:
        bench.server.remove("streamapps", NAMESPACE, NAME)
        assert await bench.reconciler.reconcile(KEY) is None
        assert bench.applications.find(KEY) is None

    on_a_bench(play)


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("is_replaced", [False, True], ids=["the same process", "a new process"])
@pytest.mark.parametrize("what", ["the StatefulSet", "the record"])
def test_a_setting_that_must_be_put_back_outlasts_what_another_hand_deletes(what: str, is_replaced: bool) -> None:
    """The process remembers it, and a new one takes it from the status."""
    raised = RaisedStandbys(before=None, instead_of=0, to=1, at=NOW, state=RaiseState.SEEN)

    async def play(bench: Bench) -> None:
        record = HoldRecord(epoch=Epoch(lease=0, counter=int(bench.clock.now().timestamp())), standbys=raised)
        bench.server.put("statefulsets", with_record(bench, encode(record)))
        await bench.make_pass()
        if what == "the record":
            bench.server.put("statefulsets", with_record(bench, None))
        else:
            bench.server.remove("statefulsets", NAMESPACE, NAME)
        if is_replaced:
            await bench.restart()
        for _ in range(4):
            bench.clock.move(2)
            await bench.make_pass()
        found = decode(bench.record() or "")
        assert isinstance(found, HoldRecord)
        assert found.standbys is not None
        assert (found.standbys.before, found.standbys.to, found.standbys.state) == (None, 1, RaiseState.SEEN)
        assert bench.status()["raisedStandbys"]["to"] == 1

    on_a_bench(play)


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(("before", "left"), [(None, (0, False)), (2, (2, True))])
def test_after_a_change_to_the_classic_protocol_the_setting_is_put_back_and_the_record_ends(
    before: int | None, left: tuple[int, bool]
) -> None:
    """It has no effect then, but would count again after the way back. While it is on record, each look is quick."""

    async def play(bench: Bench) -> None:
        raised = RaisedStandbys(before=before, instead_of=0, to=1, at=bench.clock.now(), state=RaiseState.SEEN, lease=0)
        record = HoldRecord(epoch=Epoch(lease=0, counter=int(bench.clock.now().timestamp())), standbys=raised)
        bench.group.unused_standbys = StandbySetting(1, is_set=True)
        bench.server.put("statefulsets", with_record(bench, encode(record)))
        await bench.run(lambda: bench.record() is None)
        assert bench.group.unused_standbys == StandbySetting(*left)
        watch = bench.applications.get(KEY, bench.group.app_uid).watch
        assert watch is not None
        await bench.run(lambda: not watch.is_busy)

    on_a_bench(play)


@pytest.mark.guarantee(2)
def test_what_another_hand_set_for_a_group_that_is_classic_now_stays() -> None:
    async def play(bench: Bench) -> None:
        raised = RaisedStandbys(before=None, instead_of=0, to=1, at=NOW, state=RaiseState.SEEN, lease=0)
        record = HoldRecord(epoch=Epoch(lease=0, counter=int(bench.clock.now().timestamp())), standbys=raised)
        bench.group.unused_standbys = StandbySetting(2, is_set=True)
        bench.server.put("statefulsets", with_record(bench, encode(record)))
        await bench.restart()
        await bench.run(lambda: bench.record() is None)
        assert bench.group.unused_standbys == StandbySetting(2, is_set=True)

    on_a_bench(play)


def with_record(bench: Bench, text: str | None) -> Any:
    """The StatefulSet with another hold record, or without one."""
    live = bench.statefulset()
    others = {name: value for name, value in live["metadata"].get("annotations", {}).items() if name != HOLD_RECORD}
    record = {} if text is None else {HOLD_RECORD: text}
    return {**live, "metadata": {**live["metadata"], "annotations": {**others, **record}}}


def test_a_decision_that_stays_the_same_is_logged_once(log_lines: list[EventDict]) -> None:
    async def play(bench: Bench) -> None:
        for _ in range(5):
            bench.clock.move(10)
            await bench.make_pass()
        verdicts = [line["verdict"] for line in log_lines if line["event"] == "decision"]
        assert verdicts == ["Create", "Steady"]

    on_a_bench(play)
