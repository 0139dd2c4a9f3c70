"""Small histories drawn by hand, each of one application, and ways to tell them again that change no figure."""

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from streamapp.flightrecord.schema import RECORD

NOON = datetime(2026, 11, 5, 12, tzinfo=UTC)
TASKS = [f"0_{n}" for n in range(6)]
Lines = list[tuple[float, str, str, dict[str, Any]]]


def config(app: str) -> tuple[float, str, str, dict[str, Any]]:
    told = {"generation": 1, "applicationId": app, "statefulTasks": TASKS, "acceptableRecoveryLag": 100}
    policy = {"stabilizationSeconds": 0.0, "timeoutSeconds": 0.0, "scaleDownPolicy": "Hold"}
    return (-1, app, "config", {**told, **policy})


def decided(at: float, app: str, desired: int, **more: object) -> tuple[float, str, str, dict[str, Any]]:
    counts = dict.fromkeys(("desired", "granted", "actual", "ready"), desired)
    return (at, app, "decision", {"verdict": "Steady", "reason": "Steady", **counts, **more})


def sampled(
    at: float, app: str, ordinal: int, role: str, offset: int | None, state: str | None = None
) -> tuple[float, str, str, dict[str, Any]]:
    known = {name: value for name, value in (("offset", offset), ("state", state)) if value is not None}
    copy = {"task": "0_0", "role": role, "ordinal": ordinal, "processId": f"p{ordinal}", "epoch": 1}
    return (at, app, "sample", {**copy, **known, "endOffset": 1000, "source": "AGENT", "intervalSeconds": 10.0})


def spread() -> Lines:
    held = (TASKS[:4], TASKS[4:5], TASKS[5:])
    holders = [{"processId": f"p{n}", "ordinal": n, "active": own, "threads": 1} for n, own in enumerate(held)]
    layout = {"epoch": 1, "state": "Stable", "holders": holders}
    return [config("spread"), (0, "spread", "group", layout), decided(3600, "spread", 3)]


def read_before_told() -> Lines:
    """A new leader: it has read the group before it tells the configuration, and that before it knows the tasks."""
    app, (_, _, kind, told) = "leads", config("leads")
    held = (["0_0", "0_1", "1_0", "1_1"], ["0_2", "0_3", "1_2", "1_3"])
    holders = [{"processId": f"p{n}", "ordinal": n, "active": own, "threads": 1} for n, own in enumerate(held)]
    layout = {"epoch": 1, "state": "Stable", "holders": holders}
    unknown, known = {**told, "statefulTasks": []}, {**told, "statefulTasks": ["0_0", "0_1", "0_2"]}
    lines = [(0.0, app, "group", layout), (0.5, app, kind, unknown), (9.0, app, kind, known)]
    return [*lines, decided(3600, app, 2)]


def superseded() -> Lines:
    app = "superseded"
    return [
        (0, app, "scale", {"oldReplicas": 2, "newReplicas": 4, "actor": "HPA", "generation": 2}),
        decided(1, app, 4, converged=False),
        (60, app, "scale", {"oldReplicas": 4, "newReplicas": 3, "actor": "HPA", "generation": 3}),
        decided(70, app, 3, granted=4, actual=4, converged=False),
        decided(120, app, 3, actual=4, converged=False),
        decided(150, app, 3, converged=False),
        decided(200, app, 3, converged=True),
    ]


def learning() -> Lines:
    """One copy catches up, falls behind and catches up again; one makes no way and is lost; an active restores.

    The last one loses its state on its way, and begins anew.
    """
    app = "learning"
    twice = [(0, 100), (10, 400), (20, 700), (30, 950), (40, 500), (50, 700), (60, 1000)]
    return [
        config(app),
        *[sampled(at, app, 1, "STANDBY", offset) for at, offset in twice],
        *[sampled(10.0 * n, app, 2, "LEARNER", 300) for n in range(5)],
        *[sampled(10.0 * n, app, 3, "STANDBY", at) for n, at in enumerate((0, 300, 600, 0, 400, 800, 1000))],
        sampled(0, app, 0, "ACTIVE", 200, "RESTORING"),
        sampled(10, app, 0, "ACTIVE", 600, "RESTORING"),
        sampled(20, app, 0, "ACTIVE", None, "RUNNING"),
        decided(3600, app, 3),
    ]


def identity() -> Lines:
    ghost = {"epoch": 1, "state": "Stable", "holders": [{"processId": "p9", "active": TASKS, "threads": 1}]}
    pods = [
        (at, "identity", "pod", {"ordinal": 0, "podUid": f"u{n}", "processId": f"p{n}", "volume": "v"})
        for n, at in enumerate((0, 100))
    ]
    return [*pods, (0, "identity", "group", ghost), decided(3600, "identity", 1)]


def held() -> Lines:
    app, hold = "held", {"verdict": "Hold", "reason": "LearnersCatchingUp", "holdId": "h", "granted": 3}
    hold |= {"etaKind": "NEVER"}
    a, b = {"task": "0_0", "ordinal": 1}, {"task": "0_1", "ordinal": 0}
    return [
        decided(0, app, 2, **{**hold, "blocking": [a, b], "blockingCount": 2}),
        decided(10, app, 2, **{**hold, "blocking": [a], "blockingCount": 1}),
        decided(400, app, 2, **{**hold, "reason": "ReadingsPending", "etaKind": "KNOWN"}),
        decided(410, app, 2),
        decided(3600, app, 2),
    ]


def handed_over() -> Lines:
    """A growth during which another replica of the operator takes the lead and begins its record with all it sees."""
    app, second = "handed-over", {"recorder": "s"}
    small = [{"processId": f"p{n}", "ordinal": n, "active": TASKS[3 * n : 3 * n + 3], "threads": 1} for n in range(2)]
    large = [{"processId": f"p{n}", "ordinal": n, "active": TASKS[2 * n : 2 * n + 2], "threads": 1} for n in range(3)]
    wish = {"newReplicas": 3, "actor": "USER", "generation": 2}

    def gap(at: float, task: str, most: float, stood: float) -> tuple[float, str, str, dict[str, Any]]:
        return (*stopped(at, app, task, most, stood)[:3], {**stopped(at, app, task, most, stood)[3], **second})

    return [
        (0, app, "group", {"epoch": 1, "state": "Stable", "holders": small}),
        (10, app, "scale", {**wish, "oldReplicas": 2}),
        decided(11, app, 3, actual=2, converged=False),
        (20, app, "scale", {**wish, **second}),
        (20, app, "group", {"epoch": 2, "state": "Stable", "holders": small, **second}),
        decided(21, app, 3, converged=False, **second),
        (40, app, "group", {"epoch": 3, "state": "Stable", "holders": large, **second}),
        gap(41, "0_4", 2, 0.5),
        gap(42, "0_5", 1.5, 1),
        decided(50, app, 3, converged=True, **second),
        gap(51, "0_3", 3, 2.5),
        gap(60, "0_5", 5, 0),
    ]


def told_at_joins() -> Lines:
    """A standby without an agent: at each of four joins it says how far it is, and is seen in between."""
    app = "joins"
    said = [sampled(at, app, 1, "STANDBY", offset) for at, offset in ((0, 100), (60, 500), (200, 800), (260, 1000))]
    seen = [sampled(at, app, 1, "STANDBY", None) for at in (30, 100, 150, 230)]
    return [config(app), *[(*one[:3], {**one[3], "source": "GROUP"}) for one in (*said, *seen)], decided(3600, app, 3)]


def layout(app: str, at: float, epoch: int, *held: list[str]) -> tuple[float, str, str, dict[str, Any]]:
    """A layout of the group: the tasks of each process."""
    holders = [{"processId": f"p{n}", "ordinal": n, "active": own, "threads": 1} for n, own in enumerate(held)]
    return (at, app, "group", {"epoch": epoch, "state": "Stable", "holders": holders})


def optimum() -> Lines:
    """Six tasks on five processes: one of them must have two."""
    app = "optimum"
    return [config(app), layout(app, 0, 1, TASKS[:2], *[[task] for task in TASKS[2:]]), decided(3600, app, 5)]


def stopped(at: float, app: str, task: str, most: float, stood: float) -> tuple[float, str, str, dict[str, Any]]:
    """A task runs again."""
    last = {"$time": at - most}
    told = {"task": task, "ordinal": 2, "processId": "p2", "lastRanAt": last, "stoodSeconds": stood}
    return (at, app, "gap", {**told, "source": "AGENT"})


def crashed() -> Lines:
    """Nothing is scaled; a container starts anew, a rollout replaces a pod, another one is evicted."""
    app = "crashed"

    def pod(at: float, uid: str, box: str, revision: str) -> tuple[float, str, str, dict[str, Any]]:
        told = {"ordinal": 0, "podUid": uid, "containerId": box, "revision": revision, "isReady": True}
        return (at, app, "pod", told)

    return [
        (*config(app)[:3], {**config(app)[3], "tasks": 6}),
        decided(0, app, 3),
        *[pod(0, "u", "a", "1"), pod(300, "u", "b", "1"), pod(1500, "v", "c", "2"), pod(2400, "w", "d", "2")],
        *[stopped(310, app, "0_0", 40, 20), stopped(1520, app, "0_1", 30, 30), stopped(2410, app, "0_2", 20, 0)],
        *[stopped(3300, app, "0_3", 850, 840), decided(3600, app, 3)],
    ]


def still_down() -> Lines:
    """A task restores when the record ends."""
    app = "still-down"
    samples = [sampled(10.0 * n, app, 0, "ACTIVE", n, "RESTORING") for n in range(340)]
    return [config(app), decided(0, app, 1), *samples, decided(3600, app, 1)]


def held_by_a_person() -> Lines:
    """A user holds a scale-down; the operator opens no hold of its own."""
    app, hold = "by-a-person", {"verdict": "Hold", "reason": "HeldByUser", "granted": 3, "actual": 3, "ready": 3}
    looks = [decided(at, app, 2, **hold) for at in range(10, 1210, 200)]
    scale = (5, app, "scale", {"oldReplicas": 3, "newReplicas": 2, "actor": "USER", "generation": 2})
    return [decided(0, app, 3), scale, *looks, decided(1210, app, 2, converged=True), decided(3600, app, 2)]


def one_blocks_alone() -> Lines:
    """Many tasks wait together, of which the line names two, and then one alone."""
    app, hold = "alone", {"verdict": "Hold", "reason": "LearnersCatchingUp", "holdId": "h", "granted": 3}
    first, second = {"task": "0_9", "ordinal": 1}, {"task": "0_1", "ordinal": 1}
    return [
        decided(0, app, 2, **{**hold, "blocking": [first, second], "blockingCount": 10}),
        decided(100, app, 2, **{**hold, "blocking": [second], "blockingCount": 1}),
        decided(130, app, 2),
        decided(3600, app, 2),
    ]


def lost_a_line() -> Lines:
    """The line of the growth from 2 to 3 pods is lost; that of the removal has the number before it."""
    app = "lost-a-line"
    scale = {"actor": "USER", "generation": 1}
    return [
        (0, app, "scale", {**scale, "newReplicas": 2}),
        decided(1, app, 2, converged=True),
        (600, app, "scale", {**scale, "oldReplicas": 3, "newReplicas": 2}),
        decided(610, app, 2, converged=True),
        decided(3600, app, 2),
    ]


def same_settings() -> Lines:
    """A new leader tells the settings before it knows the tasks, and then with them."""
    app, (_, _, kind, told) = "same", config("same")
    known = {**told, "tasks": 6, "learnerSource": "OnDemand", "threads": 3, "availability": 99.5}
    unknown = {**told, "statefulTasks": [], "threads": 2}
    return [(0, app, kind, known), (60, app, kind, unknown), (70, app, kind, {**known, "threads": 2})]


def nobody_looked() -> Lines:
    """No operator looks for half an hour; the next leader writes what it sees then."""
    app, second = "unwatched", {"recorder": "s"}
    hold = {"verdict": "Hold", "reason": "LearnersCatchingUp", "holdId": "h", "granted": 3, "actual": 3}
    return [
        (*config(app)[:3], {**config(app)[3], "tasks": 6}),
        layout(app, 0, 1, TASKS[:4], TASKS[4:]),
        decided(0, app, 2, **hold),
        decided(2400, app, 2, **second),
        (*layout(app, 2400, 2, TASKS[:3], TASKS[3:])[:3], {**layout(app, 2400, 2, TASKS[:3], TASKS[3:])[3], **second}),
        decided(3600, app, 2, **second),
    ]


UNWATCHED = {"unwatched": (600, 2400)}
"""Seconds between which no line is written, by application."""


LEADERS: Lines = [
    (-2, "", "recorder", {"mark": "STARTED", "term": 1}),
    (-2, "", "recorder", {"mark": "STARTED", "term": 2, "recorder": "s"}),
]
"""The first lines of the two recorders, which are of no application."""


def clocks_differ() -> Lines:
    """The second leader's clock is 5 s behind: its first lines have earlier times than the first one's last."""
    app, second = "skewed", {"recorder": "s"}
    hold = {"verdict": "Hold", "reason": "LearnersCatchingUp", "holdId": "h", "granted": 3, "actual": 3}
    return [
        decided(0, app, 2, **hold),
        decided(10, app, 2, **hold),
        decided(8, app, 2, converged=True, **second),
        decided(3600, app, 2, **second),
    ]


def lost_with_its_leader() -> Lines:
    """A node takes the leader and a pod along; the next leader's first look does not find the task running."""
    app, second = "node-died", {"recorder": "s"}
    begun = {"task": "0_0", "ordinal": 2, "processId": "p2", "stoodSeconds": 5.0, "source": "AGENT", **second}

    def gap(at: float, task: str, looked: float, started: float) -> tuple[float, str, str, dict[str, Any]]:
        times = {"lastRanAt": {"$time": looked}, "startedAt": {"$time": started}}
        return (at, app, "gap", {**begun, **times, "task": task, "beganBefore": True})

    return [
        (*config(app)[:3], {**config(app)[3], "tasks": 6}),
        decided(0, app, 3),
        decided(300, app, 3),
        decided(330, app, 3, **second),
        gap(331, "0_1", 290, 290),
        gap(332, "0_2", 325, 325),
        gap(390, "0_0", 330, 388),
        decided(3600, app, 3, **second),
    ]


def limited() -> Lines:
    """An autoscaler that wants fewer than its minimum for ten minutes, and cannot act then; its pod's volume fills."""
    app, bounds = "limited", {"name": "cpu", "aimsAt": "StreamApp", "minReplicas": 3}
    volume = {"ordinal": 0, "podUid": "u", "volume": "v", "requestedBytes": 1000, "containerId": "a"}
    crashed = {"containerId": "b", "endedAt": {"$time": 290.0}, "endReason": "OOMKilled", "exitCode": 137}
    return [
        (0, app, "autoscaler", {**bounds, "limitedBy": "TooFewReplicas", "cannotAct": ""}),
        (600, app, "autoscaler", {**bounds, "limitedBy": "", "cannotAct": "FailedGetResourceMetric"}),
        (900, app, "autoscaler", {**bounds, "limitedBy": "TooManyReplicas", "cannotAct": ""}),
        (0, app, "pod", {**volume, "stateBytes": 400, "freeBytes": 550}),
        (300, app, "pod", {**volume, **crashed, "stateBytes": 700, "freeBytes": 250}),
        (900, app, "pod", {**volume, **crashed, "stateBytes": 600, "freeBytes": 350}),
        (1200, app, "pod", {**volume, "isGone": True, "stateBytes": 900, "freeBytes": 50}),
        decided(3600, app, 3),
    ]


HISTORIES = (
    *(spread, read_before_told, superseded, learning, identity, held, handed_over, told_at_joins, optimum, crashed),
    *(still_down, held_by_a_person, one_blocks_alone, lost_a_line, same_settings, nobody_looked),
    *(clocks_differ, lost_with_its_leader, limited),
)


def _renamed(value: Any) -> Any:
    """The value with other names of tasks and processes, which sort the other way round."""
    if isinstance(value, dict):
        return {name: _renamed(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one) for one in value]
    if isinstance(value, str) and value[:2] == "0_":
        return f"0_{99 - int(value[2:])}"
    return f"z{9 - int(value[1:])}" if isinstance(value, str) and value[0:1] == "p" and value[1:].isdigit() else value


TOLD: dict[str, tuple[float, Callable[[Any], Any]]] = {
    "n": (0.0, lambda fields: fields),
    "shifted": (11.7 * 3600, lambda fields: fields),
    "renamed": (0.0, _renamed),
}
"""By namespace: the seconds by which all is later, and what becomes of a line's fields."""


def watched(lines: Lines) -> Lines:
    """A history with a line in each five minutes, as the operator writes them; but for `UNWATCHED`."""
    app, times = lines[0][1], [line[0] for line in lines]
    beats = range(math.ceil(min(times)), int(max(times)), 300)
    away = UNWATCHED.get(app, (0, 0))
    alive = (at for at in beats if not away[0] < at < away[1])
    return [*lines, *((float(at), app, "autoscaler", {"name": "h", "aimsAt": "StreamApp"}) for at in alive)]


def told(namespace: str) -> list[str]:
    """All histories as lines of one recorder in order of time, seen in a namespace of their own."""
    later, change = TOLD[namespace]
    every = [*LEADERS, *(line for history in HISTORIES for line in watched(history()))]
    lines = sorted(every, key=lambda line: line[0])
    texts = []
    for seq, (at, app, kind, fields) in enumerate(lines):
        own = {"v": 1, "cluster": "c", "namespace": namespace, "app": app, "uid": f"u-{app}"}
        line = {**own, "ts": {"$time": at}, "recorder": "r", "seq": seq, "kind": kind, **change(fields)}
        line["recorder"] = f"{namespace}-{line['recorder']}"
        texts.append(json.dumps({name: _timed(value, later) for name, value in line.items()}))
        RECORD.validate_json(texts[-1])
    return texts


def _timed(value: Any, later: float) -> Any:
    if isinstance(value, dict) and "$time" in value:
        return (NOON + timedelta(seconds=value["$time"] + later)).isoformat().replace("+00:00", "Z")
    return value
