"""`kubectl streamapp conformance`: each row where it holds and where it does not, and the end of each run."""

import secrets
import time
from collections.abc import Callable
from typing import Any

import pytest

from streamapp.cli.commands import conformance as command
from streamapp.cli.conformance import trial
from streamapp.cli.conformance.rows import Question
from streamapp.cli.errors import CliError
from tests.cli.cluster import NAMESPACE, Cluster
from tests.cli.conformance.world import World
from tests.cli.conftest import Ran, Run
from tests.cli.operator_there import OperatorThere

RUN = "abc123"
NAME = f"conformance-{RUN}"
ALL = [question.value for question in Question]

Conform = Callable[..., Ran]


@pytest.fixture
def world(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> World:
    there = OperatorThere(cluster)
    there.install("operator-a", lease="operator-a_1")
    there.serve()
    made = World(cluster, there, NAME)
    made.begin()

    async def given_back(*_: Any) -> tuple[int, tuple[str, ...]]:
        return (2, ()) if "way back" not in made.stays else (2, (f"{NAME}-0",))

    monkeypatch.setattr(trial, "pause", made.tick)
    monkeypatch.setattr(time, "monotonic", lambda: made.seconds)
    monkeypatch.setattr(secrets, "token_hex", lambda _: RUN)
    monkeypatch.setattr(command, "give_back", given_back)
    return made


@pytest.fixture
def conform(run: Run) -> Conform:
    whole = ("conformance", "--image", "your/counter:1", "--bootstrap-servers", "b:9092", "--yes")
    return lambda *arguments: run(*whole, "--output", "json", "--timeout", "1m", *arguments)


def results(ran: Ran) -> dict[str, str]:
    return {row["check"]: row["result"] for row in ran.document["checks"]}


def seen(ran: Ran, check: str) -> str:
    return str(next(row["seen"] for row in ran.document["checks"] if row["check"] == check))


def test_everything_holds_and_everything_is_removed(world: World, conform: Conform) -> None:
    ran = conform()
    assert results(ran) == dict.fromkeys(ALL, "pass"), ran.out
    assert (ran.code, ran.document["left"], world.left()) == (0, [], [])
    assert seen(ran, "gap") == "900ms at most, by the time of the brokers; limit 15s"
    assert seen(ran, "hold").endswith(": Stabilizing")
    assert {"preload", "remove"} <= set(world.seen_pods)


@pytest.mark.parametrize(
    ("stays", "fails"),
    [
        ("preload", "start"),
        ("raise", "growth"),
        ("hold", "hold"),
        ("step", "step"),
        ("eviction", "eviction"),
        ("identity", "identity"),
        ("volume", "volumes"),
        ("way back", "way back"),
    ],
)
def test_what_does_not_hold_is_the_row_that_fails(world: World, conform: Conform, stays: str, fails: str) -> None:
    world.stays.add(stays)
    ran = conform()
    assert [check for check, result in results(ran).items() if result == "fail"] == [fails], ran.out
    assert (ran.code, world.left()) == (1, [])


def test_the_last_words_of_a_container_that_failed_are_shown(world: World, conform: Conform) -> None:
    world.stays.add("preload")
    assert seen(conform(), "start") == f"pod {NAME}-preload, container preload: Error: no route to the brokers"


@pytest.mark.parametrize("node", [{}, {"nodeName": "lab"}], ids=["pending", "running"])
def test_a_pod_that_no_node_takes_is_told_before_what_follows_from_it(
    world: World, conform: Conform, node: dict[str, str]
) -> None:
    world.stays.add("start")

    def place(world: World) -> None:
        pod = world.find("pods", f"{NAME}-0")
        if pod is not None:
            unmet = {"type": "PodScheduled", "status": "False", "message": "no volume"}
            world.there.put("pods", {**pod, "spec": node, "status": {"conditions": [unmet]}})

    world.on_tick = place
    ran = conform()
    (row,) = [row for row in ran.document["checks"] if row["check"] == "start"]
    pending = f"pod {NAME}-0: no volume"
    assert row["result"] == "fail"
    assert row["seen"] == pending if not node else row["seen"].startswith("Converged: ; Steady: ; " + pending), row
    assert ("--storage-class" in row["next"], "doctor" in row["next"]) == (not node, bool(node))


def test_the_table_says_once_why_the_rest_was_not_tried(world: World, run: Run) -> None:
    world.stays.add("raise")
    whole = ("conformance", "--image", "your/counter:1", "--bootstrap-servers", "b:9092", "--yes", "--timeout", "1m")
    ran = run(*whole)
    assert (ran.code, ran.out.count("`growth` failed"), ran.out.count("not tried")) == (1, 1, 8 + 1)
    assert ran.out.count("Fix what failed, and run the command again.") == 1


def test_after_a_failure_the_rest_is_not_tried_and_says_why(world: World, conform: Conform) -> None:
    world.stays.add("raise")
    ran = conform()
    rest = ALL[ALL.index("growth") + 1 :]
    assert {check: results(ran)[check] for check in rest} == dict.fromkeys(rest, "not tried")
    assert seen(ran, "step") == "`growth` failed"


def test_a_long_gap_and_a_lost_record_fail(world: World, conform: Conform) -> None:
    world.gap_ms, world.passed = 16_000, 3
    ran = conform()
    assert [check for check, result in results(ran).items() if result == "fail"] == ["gap", "records"]
    assert seen(ran, "records").startswith("3 of ")
    assert results(conform("--most-gap", "20s"))["gap"] == "pass"


def test_a_missing_right_is_named_and_nothing_is_made(world: World, conform: Conform) -> None:
    world.denied = {"create pods", "delete persistentvolumeclaims"}
    ran = conform()
    assert seen(ran, "rights") == "missing: create pods, delete persistentvolumeclaims"
    assert (ran.code, world.cluster.written) == (1, [])


def test_without_the_definition_nothing_is_made(world: World, conform: Conform) -> None:
    world.there.versions = ()
    ran = conform()
    assert (results(ran)["definition"], world.cluster.written) == ("fail", [])


def test_without_an_operator_nothing_is_made(world: World, conform: Conform) -> None:
    ran = conform("--operator-namespace", "elsewhere")
    assert (results(ran)["operator"], world.cluster.written) == ("fail", [])


def test_an_object_of_that_name_is_never_touched(world: World, conform: Conform) -> None:
    world.put("services", NAME, {})
    ran = conform()
    assert (ran.code, world.left(), world.cluster.written) == (1, [f"services/{NAME}"], [])
    assert "this run did not make it" in ran.err


def test_topics_that_cannot_be_deleted_are_named(world: World, conform: Conform) -> None:
    world.stays.add("remove")
    ran = conform()
    (left,) = ran.document["left"]
    assert left.startswith(f"topics {NAME}-input, {NAME}-output and {NAME}-counts-changelog and group {NAME}")
    assert left.endswith("not authorized")
    assert (ran.code, set(results(ran).values()), world.left()) == (1, {"pass"}, [])


def test_keep_leaves_everything_and_says_how_to_remove_it(world: World, conform: Conform) -> None:
    ran = conform("--keep")
    assert f"streamapps/{NAME}" in world.left()
    assert f"kubectl delete -n {NAMESPACE} streamapp/{NAME}" in ran.document["left"][0]


@pytest.mark.parametrize("tick", [2, 5, 12])
def test_ctrl_c_cleans_up(world: World, conform: Conform, tick: int) -> None:
    def interrupt(world: World) -> None:
        if world.ticks == tick:
            raise KeyboardInterrupt

    world.on_tick = interrupt
    assert (conform().code, world.left()) == (130, [])


def test_a_crash_of_the_way_cleans_up(world: World, conform: Conform, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any) -> tuple[int, tuple[str, ...]]:
        raise CliError("StatefulSet x", "another writer", "ask who")

    monkeypatch.setattr(command, "give_back", broken)
    ran = conform()
    assert (results(ran)["way back"], world.left()) == ("fail", [])


def test_the_image_must_be_given(run: Run) -> None:
    ran = run("conformance", "--bootstrap-servers", "b:9092")
    assert (ran.code, "the project publishes no image" in ran.err) == (2, True)


def test_without_a_terminal_it_needs_a_yes(world: World, run: Run) -> None:
    ran = run("conformance", "--image", "x", "--bootstrap-servers", "b:9092")
    assert (ran.code, "add --yes" in ran.err, world.cluster.written) == (1, True, [])


def test_the_table_shows_each_row_with_its_next_step(world: World, conform: Conform) -> None:
    world.stays.add("raise")
    out = conform("--output", "table").out
    assert "growth      fail" in out
    assert "next: Run `kubectl streamapp doctor`" in out
    assert "4 pass; 1 fail; 8 not tried" in out
