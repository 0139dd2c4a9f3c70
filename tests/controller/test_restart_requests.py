"""A restart that a user asks for, through the whole shell: the request, the claim, the last check, one deletion."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from streamapp.controller.reconcile.apply import Applier
from tests.controller.doubles.bench import NAME, Bench, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE

Json = dict[str, Any]
CLAIMS = "persistentvolumeclaims"


def on_a_bench(play: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    """Play something on a bench whose application has four pods and is converged."""

    async def run() -> None:
        async with a_bench(4) as bench:
            await play(bench)

    asyncio.run(run())


def uid(bench: Bench, ordinal: int) -> str:
    """Of the pod of an ordinal."""
    pod = bench.server.get("pods", NAMESPACE, f"{NAME}-{ordinal}")
    assert pod is not None
    return str(pod["metadata"]["uid"])


def ask(bench: Bench, request: str | None) -> None:
    """Write the annotation, as a user does."""
    live = bench.server.get("streamapps", NAMESPACE, NAME)
    assert live is not None
    annotations = {} if request is None else {"streamapp.dev/restart": request}
    bench.server.put("streamapps", {**live, "metadata": {**live["metadata"], "annotations": annotations}})


def give_up(bench: Bench, ordinal: int) -> None:
    """Delete the claim: it stays for as long as its pod."""
    claim = bench.server.get(CLAIMS, NAMESPACE, f"state-{NAME}-{ordinal}")
    assert claim is not None
    bench.server.put(CLAIMS, {**claim, "metadata": {**claim["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})


def deleted(bench: Bench) -> list[int]:
    """The ordinals whose pod the operator deleted; nobody makes a new one here."""
    gone = [ordinal for ordinal in range(4) if bench.server.get("pods", NAMESPACE, f"{NAME}-{ordinal}") is None]
    deletions = [write for write in bench.server.writes if (write.plural, write.method) == ("pods", "DELETE")]
    assert len(deletions) == len(gone)
    return gone


async def for_a_while(bench: Bench, seconds: int = 60) -> None:
    """Let time pass."""
    for _ in range(0, seconds, 2):
        bench.clock.move(2)
        await bench.make_pass()


def test_the_pod_that_is_named_is_deleted_once_and_no_other() -> None:
    async def play(bench: Bench) -> None:
        ask(bench, uid(bench, 1))
        await bench.run(lambda: deleted(bench) == [1])
        await for_a_while(bench)
        assert (deleted(bench), bench.wrongs) == ([1], [])

    on_a_bench(play)


def test_what_is_no_request_does_nothing() -> None:
    async def play(bench: Bench) -> None:
        ask(bench, f"{uid(bench, 1)} at-once, {NAME}-1, , {uid(bench, 2)} new-volume please")
        await for_a_while(bench)
        assert deleted(bench) == []

    on_a_bench(play)


@pytest.mark.guarantee(4)
def test_a_new_volume_is_the_users_own_deletion_and_the_restart_waits_for_it() -> None:
    async def play(bench: Bench) -> None:
        ask(bench, f"{uid(bench, 1)} new-volume")
        await for_a_while(bench)
        assert deleted(bench) == []
        give_up(bench, 1)
        await bench.run(lambda: deleted(bench) == [1])
        assert not [write for write in bench.server.writes if write.plural == CLAIMS and write.method == "DELETE"]

    on_a_bench(play)


@pytest.mark.guarantee(1)
def test_without_a_request_a_claim_that_is_being_deleted_holds_everything() -> None:
    async def play(bench: Bench) -> None:
        ask(bench, uid(bench, 2))
        give_up(bench, 1)
        await for_a_while(bench)
        assert deleted(bench) == []
        bench.desired(3)
        await for_a_while(bench)
        assert (bench.granted(), bench.condition("ScaleDownHeld")) == (4, ("True", "VolumeClaimMissing"))

    on_a_bench(play)


def test_a_request_that_is_withdrawn_at_the_last_moment_deletes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = []

    async def play(bench: Bench) -> None:
        async def withdraw(*_: object) -> None:
            judged.append(bench.clock.now())
            ask(bench, None)

        monkeypatch.setattr(Applier, "_check_agents", withdraw)
        ask(bench, uid(bench, 1))
        await for_a_while(bench)
        assert (deleted(bench), len(judged)) == ([], 1)

    on_a_bench(play)
