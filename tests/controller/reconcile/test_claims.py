"""Claims and the StatefulSet as the passes find them: unlabelled, deleted, gone, or left by another application."""

import asyncio
from collections.abc import Callable, Coroutine
from copy import deepcopy
from typing import Any
from unittest.mock import patch

import pytest

from streamapp.api.names import KEPT_STATE
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.seeding import seeded_process_id
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import RefusedError
from streamapp.kube.objects import claims
from streamapp.kube.objects.kept_states import decode
from tests.controller.doubles.bench import NAME, Bench, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE

Json = dict[str, Any]
CLAIMS = "persistentvolumeclaims"
OTHER = str(seeded_process_id("another-uid", Ordinal(0)))
"""The process ID of no pod here."""


def on_a_bench(play: Callable[[Bench], Coroutine[Any, Any, None]], **spec: Any) -> None:
    """Play something on a bench whose application has four pods and is converged."""

    async def run() -> None:
        async with a_bench(4, **spec) as bench:
            await play(bench)

    asyncio.run(run())


def claim(bench: Bench, ordinal: int) -> Json:
    """The claim of an ordinal."""
    found = bench.server.get(CLAIMS, NAMESPACE, f"state-{NAME}-{ordinal}")
    assert found is not None
    return found


def annotations(bench: Bench, ordinal: int) -> Json:
    """What stands on it."""
    found: Json = claim(bench, ordinal)["metadata"].get("annotations", {})
    return found


def change(bench: Bench, ordinal: int, **fields: Any) -> None:
    """Change fields of its metadata, as a user does."""
    live = claim(bench, ordinal)
    bench.server.put(CLAIMS, {**live, "metadata": {**live["metadata"], **fields}})


async def for_a_while(bench: Bench, seconds: int = 120) -> None:
    """Let time pass."""
    for _ in range(0, seconds, 2):
        bench.clock.move(2)
        await bench.make_pass()


@pytest.mark.guarantee(2)
@pytest.mark.guarantee(5)
def test_a_claim_without_its_label_still_says_that_its_pod_runs_as_another_process() -> None:
    async def play(bench: Bench) -> None:
        written = {**annotations(bench, 0), "streamapp.dev/process-id": OTHER}
        change(bench, 0, annotations=written, labels={})
        bench.desired(3)
        await for_a_while(bench)
        assert (bench.granted(), bench.condition("ScaleDownHeld")) == (4, ("True", "ProcessIdMismatch"))
        assert bench.condition("ProcessIdentityStable") == ("False", "ProcessIdMismatch")

    on_a_bench(play)


def test_claims_without_labels_change_nothing_for_an_application_that_is_well() -> None:
    async def play(bench: Bench) -> None:
        for ordinal in range(4):
            change(bench, ordinal, labels={})
        bench.desired(3)
        await bench.run(lambda: bench.is_settled(3), 600)
        assert bench.wrongs == []

    on_a_bench(play)


@pytest.mark.guarantee(2)
@pytest.mark.guarantee(5)
@pytest.mark.parametrize("is_gone", [False, True], ids=["it is being deleted", "it is gone"])
def test_a_pod_whose_claim_is_not_kept_holds_every_scale_down(is_gone: bool) -> None:
    async def play(bench: Bench) -> None:
        if is_gone:
            bench.server.remove(CLAIMS, NAMESPACE, f"state-{NAME}-1")
        else:
            change(bench, 1, deletionTimestamp="2026-11-21T12:00:00Z")
        bench.desired(3)
        await for_a_while(bench)
        assert (bench.granted(), bench.condition("ScaleDownHeld")) == (4, ("True", "VolumeClaimMissing"))
        assert bench.condition("ProcessIdentityStable") == ("False", "VolumeClaimMissing")

    on_a_bench(play)


def test_claims_cost_one_request_in_each_pass_and_a_second_one_where_the_label_does_not_find_all() -> None:
    async def play(bench: Bench) -> None:
        async def reads() -> list[str]:
            before = len(bench.server.reads)
            bench.clock.move(30)
            await bench.make_pass()
            paths = [path for path in bench.server.reads[before:] if CLAIMS in path]
            return ["labelSelector" if "labelSelector" in path else "all" for path in paths]

        assert await reads() == ["labelSelector"]
        for ordinal in range(4):
            change(bench, ordinal, labels={})
        assert await reads() == ["labelSelector", "all"]

    on_a_bench(play)


@pytest.mark.guarantee(5)
def test_the_process_id_of_another_application_on_a_kept_claim_is_no_mismatch() -> None:
    async def play(bench: Bench) -> None:
        for ordinal in range(4):
            left = {"streamapp.dev/application-id": "wordcount-before", "streamapp.dev/process-id": OTHER}
            change(bench, ordinal, annotations=left)
        await bench.run(lambda: annotations(bench, 3).get("streamapp.dev/process-id") != OTHER, 60)
        assert [annotations(bench, ordinal) for ordinal in range(4)] == [
            {
                "streamapp.dev/application-id": "wordcount",
                "streamapp.dev/process-id": str(seeded_process_id(bench.group.app_uid, Ordinal(ordinal))),
            }
            for ordinal in range(4)
        ]
        bench.desired(3)
        await bench.run(lambda: bench.is_settled(3), 600)

    on_a_bench(play)


@pytest.mark.guarantee(5)
def test_the_recorded_process_id_of_this_application_is_never_replaced() -> None:
    async def play(bench: Bench) -> None:
        written = {**annotations(bench, 0), "streamapp.dev/process-id": OTHER}
        change(bench, 0, annotations=written)
        await for_a_while(bench)
        assert annotations(bench, 0) == written
        assert bench.condition("ProcessIdentityStable") == ("False", "ProcessIdMismatch")

    on_a_bench(play)


def test_the_claim_of_a_removed_pod_says_what_lies_there_and_keeps_its_identity() -> None:
    async def play(bench: Bench) -> None:
        before = annotations(bench, 3)
        bench.desired(3)
        await bench.run(lambda: bench.is_settled(3), 600)
        after = annotations(bench, 3)
        kept = decode(after.pop(KEPT_STATE))
        assert after == before
        assert kept is not None
        assert kept.positions
        assert KEPT_STATE not in annotations(bench, 2)

    on_a_bench(play)


def test_a_removal_is_done_where_its_claim_cannot_be_annotated() -> None:
    async def play(bench: Bench) -> None:
        bench.server.refuse_write = lambda request: (409, "changed since") if request.plural == CLAIMS else None
        bench.desired(3)
        await bench.run(lambda: bench.is_settled(3), 600)
        assert KEPT_STATE not in annotations(bench, 3)

    on_a_bench(play)


def test_a_pass_does_not_wait_long_for_a_claim_that_is_slow_to_annotate(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []

    async def never_answered(*_: object) -> None:
        waited.append("begun")
        await asyncio.sleep(3)
        waited.append("to the end")

    async def play(bench: Bench) -> None:
        monkeypatch.setattr("streamapp.kube.objects.claims.record_state", never_answered)
        monkeypatch.setattr("streamapp.controller.reconcile.apply.RECORD_STATE_SECONDS", 0.01)
        bench.desired(3)
        await bench.run(lambda: bench.is_settled(3), 600)
        assert waited == ["begun"]

    on_a_bench(play)


def asked_for(bench: Bench) -> list[str]:
    """What each claim asks for, by ordinal."""
    return [claim(bench, ordinal)["spec"]["resources"]["requests"]["storage"] for ordinal in range(4)]


def uids(bench: Bench) -> list[str]:
    """Of the pods of the first four ordinals."""
    found = [bench.server.get("pods", NAMESPACE, f"{NAME}-{ordinal}") for ordinal in range(4)]
    return [pod["metadata"]["uid"] for pod in found if pod is not None]


def with_storage(bench: Bench, storage: str) -> None:
    """Change the size of volumes in the StreamApp, as a user does."""
    live = bench.server.get("streamapps", NAMESPACE, NAME)
    assert live is not None
    changed = deepcopy(live)
    changed["spec"]["state"]["volumeClaimTemplate"]["resources"]["requests"]["storage"] = storage
    changed["metadata"]["generation"] += 1
    bench.server.put("streamapps", changed)


def test_every_claim_asks_for_as_much_as_the_streamapp_says_and_no_pod_restarts() -> None:
    async def play(bench: Bench) -> None:
        before, pods = asked_for(bench), uids(bench)
        with_storage(bench, "40Gi")
        await bench.run(lambda: asked_for(bench) == ["40Gi"] * 4, 60)
        assert before != ["40Gi"] * 4
        assert uids(bench) == pods
        statefulset = bench.server.get("statefulsets", NAMESPACE, NAME)
        assert statefulset is not None
        (template,) = statefulset["spec"]["volumeClaimTemplates"]
        assert template["spec"]["resources"]["requests"]["storage"] == before[0]
        assert annotations(bench, 0)["streamapp.dev/process-id"]
        bench.desired(5)
        await bench.run(lambda: bench.is_settled(5), 600)
        # the claim of a new ordinal begins with the size in the claim template
        await bench.run(lambda: claim(bench, 4)["spec"]["resources"]["requests"]["storage"] == "40Gi", 60)
        assert bench.wrongs == []

    on_a_bench(play)


def test_a_claim_that_cannot_be_expanded_is_told_and_tried_again_in_five_minutes() -> None:
    async def play(bench: Bench) -> None:
        tries: list[str] = []

        async def refuse(_client: KubeClient, live: Json, _storage: str) -> None:
            tries.append(live["metadata"]["name"])
            raise RefusedError(
                f"apply {live['metadata']['name']}", "only dynamically provisioned pvc can be resized", ""
            )

        with patch.object(claims, "expand", refuse):
            with_storage(bench, "40Gi")
            await for_a_while(bench, 240)
            assert sorted(tries) == [f"state-{NAME}-{ordinal}" for ordinal in range(4)]
            await for_a_while(bench, 240)
            assert len(tries) == 8
            made = bench.metrics.steps.labels(NAMESPACE, NAME, "ExpandVolume", "success")
            failed = bench.metrics.steps.labels(NAMESPACE, NAME, "ExpandVolume", "tolerated")
            assert (made._value.get(), failed._value.get()) == (0, 8)
            lowest = claim(bench, 0)
            bench.server.remove(CLAIMS, NAMESPACE, f"state-{NAME}-0")
            bench.server.put(CLAIMS, {**lowest, "metadata": {**lowest["metadata"], "uid": "of a new claim"}})
            await for_a_while(bench, 40)
            assert tries[8:] == [f"state-{NAME}-0"]
            bench.desired(3)
            await bench.run(lambda: bench.is_settled(3), 600)
        assert bench.wrongs == []
        events = [each.body for (plural, _, _), each in bench.server.objects.items() if plural == "events"]
        notes = [event["note"] for event in events if event["reason"] == "VolumeExpansionRefused"]
        assert notes
        assert all("only dynamically provisioned" in note for note in notes)

    on_a_bench(play)


@pytest.mark.guarantee(8)
def test_a_statefulset_that_a_finalizer_keeps_is_a_missing_one_and_a_raise_still_goes_out() -> None:
    async def play(bench: Bench) -> None:
        live = deepcopy(bench.server.get("statefulsets", NAMESPACE, NAME))
        assert live is not None
        live["metadata"] |= {"deletionTimestamp": "2026-11-21T12:00:00Z", "finalizers": ["example.com/backup"]}
        bench.server.put("statefulsets", live)
        bench.desired(3)
        await for_a_while(bench)
        assert (bench.granted(), bench.condition("ScaleDownHeld")) == (4, ("True", "StatefulSetMissing"))
        assert bench.condition("Ready") == ("False", "StatefulSetMissing")
        bench.desired(5)
        await bench.run(lambda: bench.granted() == 5, 60)

    on_a_bench(play)
