"""The flight record of whole passes on the fake cluster: a held scale-down is on record from wish to end."""

import asyncio
import contextlib
import gzip
import json
import os
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator

from streamapp.controller.leader.leadership import Alone, Leadership
from streamapp.controller.metrics import Metrics
from streamapp.controller.ports import KafkaStepError
from streamapp.controller.record.files import finished, is_of_samples
from streamapp.controller.record.recorder import PassRecorder
from streamapp.controller.record.setup import Recording, recording, term_of
from streamapp.controller.settings import Settings
from streamapp.flightrecord.changes import FlightLog, Look
from streamapp.flightrecord.schema import RECORD, schema
from tests.controller.doubles.bench import Bench, a_bench
from tests.controller.doubles.fake_group import FakeGroup
from tests.controller.doubles.fake_pods import NAMESPACE

VALIDATOR = Draft202012Validator(schema())
Line = dict[str, Any]


def recording_on(bench: Bench, folder: Path, **settings: Any) -> Recording:
    """A recorder for the next process of the bench, that writes for real."""
    given = replace(Settings(), record_folder=str(folder), instance="pod-0", cluster_name="lab", **settings)
    made = recording(given, Metrics(), bench.clock.now)
    bench.recorder = made.recorder
    made.start()
    return made


def lines_in(folder: Path) -> list[Line]:
    found = []
    for _, _, path in finished(folder):
        lines = [json.loads(text) for text in gzip.decompress(path.read_bytes()).splitlines()]
        assert {line["kind"] == "samples" for line in lines} == {is_of_samples(path)}
        found += lines
    for line in found:
        VALIDATOR.validate(line)
        RECORD.validate_python(line)
    return sorted(found, key=lambda line: line["seq"])


async def held_and_released(bench: Bench) -> None:
    """Four pods, three are wished for: held for the copies, then one goes."""
    bench.group.lag = 500_000
    bench.desired(3)
    for _ in range(30):
        bench.clock.move(2)
        await bench.make_pass()
    assert bench.granted() == 4
    bench.group.lag = 0
    await bench.run(lambda: bench.is_settled(3))


def record_of(play: Any, folder: Path, **spec: Any) -> list[Line]:
    async def run() -> None:
        async with a_bench(4, **spec) as bench:
            made = recording_on(bench, folder)
            await bench.restart()
            await bench.make_pass()
            await play(bench)
            for _ in range(3):
                bench.clock.move(2)
                await bench.make_pass()
            await made.close()

    asyncio.run(run())
    return lines_in(folder)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> list[Line]:
    return record_of(held_and_released, tmp_path_factory.mktemp("record"))


def of(lines: list[Line], kind: str) -> list[Line]:
    return [line for line in lines if line["kind"] == kind]


def copies_in(lines: list[Line]) -> list[Line]:
    """The samples, a line for each copy."""
    found = []
    for line in of(lines, "samples"):
        for copies in line["copies"]:
            for number, task in enumerate(copies["tasks"]):
                known = {"task": task, "ts": copies["at"], "epoch": line["epoch"]}
                for one, many in (("offset", "offsets"), ("endOffset", "endOffsets")):
                    if copies.get(many) and copies[many][number] is not None:
                        known[one] = copies[many][number]
                found.append({**copies, **known})
    return found


def test_every_line_has_its_number_and_belongs_to_the_application(story: list[Line]) -> None:
    assert [line["seq"] for line in story] == list(range(len(story)))
    assert {(line["cluster"], line["recorder"]) for line in story} == {("lab", story[0]["recorder"])}
    assert [line["mark"] for line in of(story, "recorder")] == ["STARTED", "STOPPED"]
    others = [line for line in story if line["kind"] != "recorder"]
    assert {(line["namespace"], line["app"]) for line in others} == {(NAMESPACE, "counter")}
    assert len({line["uid"] for line in others}) == 1


def test_the_wish_is_on_record_with_what_it_was_before(story: list[Line]) -> None:
    assert [(line.get("oldReplicas"), line["newReplicas"]) for line in of(story, "scale")] == [(None, 4), (4, 3)]


def test_the_hold_is_told_at_each_look_with_the_tasks_that_it_waits_for(story: list[Line]) -> None:
    held = [line for line in of(story, "decision") if line["reason"] == "LearnersCatchingUp"]
    assert len(held) > 5
    assert {(line["desired"], line["granted"], line["actual"], line["target"]) for line in held} == {(3, 4, 4, 3)}
    assert len({line["holdId"] for line in held}) == 1
    assert all(line["blockingCount"] == len(line["blocking"]) > 0 for line in held)
    assert {blocker["lag"] for line in held for blocker in line["blocking"]} == {500_000}
    quiet = [line for line in of(story, "decision") if not line["holdId"]]
    told = [(line["verdict"], line["reason"], line["actual"], line["ready"], line.get("converged")) for line in quiet]
    assert len(told) < 20, "what does not change is told once"
    assert told[-1] == ("Steady", "Steady", 3, 3, True)


def test_the_steps_are_on_record_and_the_step_is_closed_once(story: list[Line]) -> None:
    steps = Counter((line["step"], line["outcome"]) for line in of(story, "step"))
    assert steps["GrantReplicas", "DONE"] == 1
    assert steps["TriggerRebalance", "DONE"] >= 1
    [grant] = [line for line in of(story, "step") if line["step"] == "GrantReplicas"]
    assert (grant["fromReplicas"], grant["toReplicas"]) == (4, 3)
    [closed] = of(story, "stepClosed")
    assert (closed["fromReplicas"], closed["toReplicas"]) == (4, 3)
    assert closed["heldSeconds"] > 50
    assert closed["worstGapSeconds"] >= closed["gapErrorSeconds"]
    held = {line["holdId"] for line in of(story, "decision")} - {""}
    assert closed["holdId"] in held


def test_pods_and_layouts_are_on_record_when_they_change(story: list[Line]) -> None:
    pods = of(story, "pod")
    assert {line["ordinal"] for line in pods} == {0, 1, 2, 3}
    assert [line["ordinal"] for line in pods if line["isGone"]] == [3]
    assert all(line["processId"] for line in pods)
    groups = of(story, "group")
    epochs = [line["epoch"] for line in groups]
    assert epochs == sorted(epochs)
    layouts = [line for line in groups if line["holders"]]
    assert len(layouts[0]["holders"]) == 4
    assert len(layouts[-1]["holders"]) == 3
    for line in layouts:
        active = [task for holder in line["holders"] for task in holder["active"]]
        assert sorted(active) == sorted(set(active)), "a task is active twice"
    assert {line["state"] for line in groups} >= {"Stable"}
    assert len(of(story, "config")) <= 4
    assert of(story, "config")[-1]["tasks"] == 6


def test_copies_that_are_behind_are_sampled_and_once_more_when_they_are_not(story: list[Line]) -> None:
    samples = copies_in(story)
    assert {line["task"] for line in samples} == {f"0_{partition}" for partition in range(6)}
    measured = [line for line in samples if line["role"] == "STANDBY" and "endOffset" in line]
    behind = [line for line in measured if line["endOffset"] - line["offset"] == 500_000]
    assert len(behind) >= 6
    for line in behind:
        later = [one for one in samples if one["task"] == line["task"] and one["ts"] > line["ts"]]
        assert any(one["role"] == "ACTIVE" or one.get("endOffset", 1) == one.get("offset", 0) for one in later), (
            f"{line['task']} never caught up"
        )
    running = [line for line in samples if line["role"] == "ACTIVE" and line.get("state") == "RUNNING"]
    assert running
    assert all("offset" not in line for line in running)
    epochs = {line["epoch"] for line in of(story, "group")}
    assert {line["epoch"] for line in samples} <= epochs


def test_a_step_that_fails_is_on_record_as_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object) -> None:
        raise KafkaStepError("no answer")

    async def play(bench: Bench) -> None:
        monkeypatch.setattr(FakeGroup, "trigger_rebalance", refuse)
        bench.desired(3)
        for _ in range(20):
            bench.clock.move(2)
            await bench.make_pass()

    steps = {(line["step"], line["outcome"]) for line in of(record_of(play, tmp_path), "step")}
    assert ("TriggerRebalance", "FAILED") in steps
    assert ("TriggerRebalance", "DONE") not in steps


def test_a_pod_that_took_the_place_of_another_between_two_passes_is_what_is_there(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        bench.clock.move(2)
        bench.pods.replace(1)
        await bench.make_pass()

    lines = [line for line in of(record_of(play, tmp_path), "pod") if line["ordinal"] == 1]
    gone = next(line for line in lines if line["isGone"])
    after = [line for line in lines if line["podUid"] != gone["podUid"]]
    assert after
    assert all(line["seq"] > gone["seq"] and not line["isGone"] for line in after)


def test_the_number_of_the_lease_is_known_only_where_there_is_one() -> None:
    assert term_of(Alone(transitions=4))() is None
    assert term_of(cast("Leadership", SimpleNamespace(transitions=4)))() == 4


def test_a_fault_in_the_recorder_ends_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("in the recorder")

    monkeypatch.setattr("streamapp.flightrecord.changes.FlightLog.lines", fail)
    assert record_of(held_and_released, tmp_path) == []


def test_what_was_news_in_a_pass_that_could_not_be_told_is_told_by_the_next_and_the_fault_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, metrics = FlightLog.lines, Metrics()

    def fail(self: FlightLog, look: Look) -> None:
        told(self, look)
        raise ZeroDivisionError("in the recorder")

    async def play(bench: Bench) -> None:
        bench.desired(3)
        bench.clock.move(2)
        with monkeypatch.context() as failing:
            failing.setattr(FlightLog, "lines", fail)
            await bench.make_pass()

    monkeypatch.setattr("tests.controller.record.test_recorder.Metrics", lambda: metrics)
    lines = record_of(play, tmp_path)
    scales = of(lines, "scale")
    assert [line["newReplicas"] for line in scales] == [4, 4, 3], "with what was known before, at the time it had then"
    assert scales[0]["ts"] == scales[1]["ts"] < scales[2]["ts"]
    assert metrics.registry.get_sample_value("streamapp_record_errors_total", {"to": "pass"}) == 1


@contextlib.contextmanager
def a_disk_that_hangs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Writes to the record's files go to a pipe that is full, and so hang in the kernel."""
    pipes, real = [], os.open

    def open_pipe(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if not str(path).endswith(".open"):
            return real(path, flags, *rest, **named)
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writing, bytes(65_536))
        os.set_blocking(writing, True)
        pipes.append(reading)
        return writing

    with monkeypatch.context() as patch:
        patch.setattr("streamapp.controller.record.files.os.open", open_pipe)
        yield
        for reading in pipes:
            os.close(reading)


@pytest.mark.slow
def test_passes_on_a_disk_that_hangs_take_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamapp.controller.record.setup.PATIENCE_SECONDS", 0.3)

    async def run() -> tuple[list[float], list[float], float]:
        async with a_bench(4) as bench:
            made = recording_on(bench, tmp_path)
            made.recorder.queues[0]._most_bytes = 8_000  # so that it is full within seconds
            await bench.restart()
            bench.group.lag = 500_000
            bench.desired(3)
            found: dict[bool, list[float]] = {True: [], False: []}
            for number in range(200):
                is_recorded = number % 2 == 0
                bench.reconciler._recorder = made.recorder if is_recorded else PassRecorder.off()
                bench.clock.move(2)
                began = time.perf_counter()
                await bench.make_pass()
                found[is_recorded].append(time.perf_counter() - began)
            began = time.perf_counter()
            await made.close()
            took = time.perf_counter() - began
            assert made.recorder.queues[0].dropped_in_all > 0
            assert made.writer is not None
            assert not made.writer.wait(0), "it was to hang"
            return found[False], found[True], took

    with a_disk_that_hangs(monkeypatch):
        without, hung, took = asyncio.run(run())
    assert statistics.median(hung) < 1.5 * statistics.median(without) + 0.005
    assert took < 5
