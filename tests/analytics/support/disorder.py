"""A made-up record of applications to which everything odd happens that the contract allows: each follows from a seed.

Two recorders that overlap, a clock that is set back, an application that is made again under its name, wishes within a
second, holds without a beginning, steps without an end, copies that lose what they had. What is true of it nobody
plants: it is for comparing, by another engine and by other portions of the same files.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from typing import Any

from streamapp.flightrecord.schema import RECORD

START = datetime(2026, 11, 1, tzinfo=UTC)
SPAN = 2 * 86_400.0
TASKS = [f"{n % 2}_{n // 2}" for n in range(6)]
NAMESPACE = "disorder"
Line = tuple[float, str, dict[str, Any]]
"""When, of which kind, with which fields."""


def _config(rng: Random, at: float) -> Line:
    told = {"generation": rng.randint(1, 3), "applicationId": "a", "acceptableRecoveryLag": rng.choice((0, 100, 1000))}
    policy = {"stabilizationSeconds": 0.0, "timeoutSeconds": 0.0, "scaleDownPolicy": "Hold"}
    own = {"applicationRecoveryLag": rng.choice((50, 500))} if rng.random() < 0.5 else {}
    return (
        at,
        "config",
        {**told, **policy, **own, "tasks": 6, "statefulTasks": rng.choice((TASKS, TASKS[:4], TASKS[1:3], []))},
    )


def _layouts(rng: Random, times: list[float]) -> Iterator[Line]:
    for epoch, at in enumerate(sorted(times)):
        pods = rng.randint(1, 4)
        owners = {task: rng.randrange(pods) for task in TASKS}
        holders = [
            {
                "processId": f"p{n}",
                **({} if rng.random() < 0.1 else {"ordinal": n}),
                "active": [task for task in TASKS if owners[task] == n],
                "standby": [task for task in TASKS if (owners[task] + 1) % pods == n],
                "threads": rng.randint(0, 2),
            }
            for n in range(pods)
        ]
        yield at, "group", {"epoch": epoch, "state": "Stable", "holders": holders}


def _pods(rng: Random, times: list[float]) -> Iterator[Line]:
    for at in sorted(times):
        ordinal = rng.randrange(4)
        flags = {name: rng.random() < 0.7 for name in ("isScheduled", "isReady")} | {"isGone": rng.random() < 0.2}
        identity: dict[str, str | int] = {
            "processId": rng.choice((f"p{ordinal}", f"p{ordinal}", "", f"q{ordinal}")),
            "volume": rng.choice(("v", "w", "")),
            "node": rng.choice(("n1", "n2", "")),
        }
        if at % 3 > 1:
            identity |= {"stateBytes": int(at), "freeBytes": int(SPAN - at), "requestedBytes": int(at % 7)}
        identity |= {"revision": rng.choice(("", "1", "1", "2")), "containerId": rng.choice(("", "c", "c", "d"))}
        yield at, "pod", {"ordinal": ordinal, "podUid": f"u{rng.randrange(3)}", **flags, **identity}


def _gaps(rng: Random, times: list[float]) -> Iterator[Line]:
    """Tasks that did not run for a while; of some it is not known for how long at least."""
    for at in times:
        most = rng.choice((0.5, 5.0, 900.0, 9000.0))
        if at > most:
            told = {"task": rng.choice(TASKS), "ordinal": 0, "processId": "p0", "lastRanAt": _time(at - most)}
            yield at, "gap", {**told, "stoodSeconds": rng.choice((0.0, most / 2, most)), "source": "AGENT"}


def _steps(rng: Random, times: list[float]) -> Iterator[Line]:
    """Wishes, and what the operator decided until the next one."""
    wish = rng.randint(0, 4)
    edges = [*sorted(times), SPAN]
    for hold, (at, until) in enumerate(pairwise(edges)):
        old, wish = wish, rng.randint(0, 4)
        told = {} if rng.random() < 0.2 else {"oldReplicas": old}
        yield at, "scale", {**told, "newReplicas": wish, "actor": "HPA", "generation": 1}
        granted = actual = old
        looks = sorted(rng.uniform(at, min(until, at + 4000)) for _ in range(rng.randint(0, 6)))
        for n, look in enumerate(looks):
            is_last = n == len(looks) - 1
            granted, actual = (wish if is_last else granted), (wish if rng.random() < 0.4 else actual)
            counts = {"desired": wish, "granted": granted, "actual": actual, "ready": actual}
            converged = {"converged": is_last or rng.random() < 0.1} if rng.random() < 0.7 else {}
            held = {} if wish >= old or is_last else {"holdId": f"h{hold}", "target": wish}
            names = rng.sample(TASKS, rng.randint(0, 3)) if held else []
            blocking = [{"task": task, **({"ordinal": 0} if rng.random() < 0.5 else {})} for task in names]
            reason = rng.choice(("LearnersCatchingUp", "FactsStale", "ReadingsPending"))
            why = {
                "verdict": "Hold",
                "reason": reason,
                "blocking": blocking,
                "blockingCount": len(blocking) + rng.choice((0, 0, 2)) * bool(blocking),
                **({"etaKind": ("NEVER", "KNOWN", "NOT_MEASURED")[int(look) % 3]} if look % 4 > 1 else {}),
            }
            yield look, "decision", {**why, **counts, **converged, **held}
            if is_last and wish < old:
                done = {"step": "GrantReplicas", "outcome": rng.choice(("DONE", "FAILED")), "reason": "Covered"}
                yield look, "step", {**done, "fromReplicas": old, "toReplicas": wish}
                gap = {} if rng.random() < 0.3 else {"worstGapSeconds": rng.uniform(0, 5), "gapErrorSeconds": 0.5}
                span = {"grantedAt": _time(look + rng.uniform(-5, 5)), "tookSeconds": 3.0, "fromReplicas": old}
                yield look + rng.uniform(0, 20), "stepClosed", {**span, **gap, "toReplicas": wish, "holdId": f"h{hold}"}


def _copies(rng: Random, times: list[float]) -> Iterator[Line]:
    """Copies that catch up, fall back, lose what they had, or are not seen for a while."""
    for began in times:
        task, ordinal, role = rng.choice(TASKS), rng.randrange(4), rng.choice(("ACTIVE", "STANDBY", "LEARNER"))
        copy = {"task": task, "role": role, "ordinal": ordinal, "processId": f"p{ordinal}", "source": "AGENT"}
        offset, end = rng.randint(0, 3000), rng.randint(3000, 4000)
        pauses = [rng.choice((5.0, 10.0, 10.0, 15.0, 400.0)) for _ in range(rng.randint(1, 8))]
        for at in accumulate(pauses, initial=began):
            offset = min(end, 0 if rng.random() < 0.1 else offset + rng.randint(0, 1500))
            end += rng.randint(0, 300)
            state = {"state": rng.choice(("RUNNING", "RESTORING"))} if role == "ACTIVE" and rng.random() < 0.8 else {}
            known = (
                {"endOffset": end}
                if "RUNNING" in state.values() or rng.random() < 0.1
                else {"offset": offset, "endOffset": end}
            )
            yield at, "sample", {**copy, **state, **known, "intervalSeconds": rng.choice((5.0, 10.0)), "epoch": 1}


def _changelogs(began: float, ended: float) -> Iterator[Line]:
    """Ends of changelogs, now often and now seldom; topics are made anew, and the number of tasks changes."""
    at, slots = began, 0
    while (at := at + (40, 40, 700, 2000, 9000)[int(at) % 5]) < ended:
        slots = 0 if int(at) % 29 == 0 else slots + int(at) % 100_000
        yield at, "changelogs", {"slots": slots, "tasks": 6 if int(at) % 7 else 5}


def _watched(rng: Random, began: float, ended: float) -> Iterator[Line]:
    """A line every few minutes, but for some times in which no operator looks."""
    holes = [(at, at + rng.uniform(600, 9000)) for at in (rng.uniform(began, ended) for _ in range(rng.randint(0, 3)))]
    at = began
    while (at := at + rng.uniform(200, 599)) < ended:
        if not any(low < at < high for low, high in holes):
            limits = {
                "limitedBy": ("", "TooFewReplicas", "TooManyReplicas")[int(at) % 3],
                "cannotAct": "x" * (int(at) % 2),
            }
            yield at, "autoscaler", {"name": "w", "aimsAt": "StreamApp", **(limits if at % 5 > 1 else {})}


def _time(at: float) -> str:
    return (START + timedelta(seconds=at)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _life(rng: Random, began: float, ended: float) -> list[Line]:
    """All lines of one application."""

    def times(most: int, least: int = 0) -> list[float]:
        return [rng.uniform(began, ended) for _ in range(rng.randint(least, most))]

    wishes = times(6)
    wishes += [at + rng.uniform(0.001, 1) for at in wishes if rng.random() < 0.3]
    found = [_config(rng, at) for at in times(2)]
    found += [
        *_layouts(rng, times(6)),
        *_pods(rng, times(12)),
        *_gaps(rng, times(5)),
        *_steps(rng, wishes),
        *_copies(rng, times(6, 1)),
        *_changelogs(began, ended),
    ]
    found = [line for line in found if line[0] < SPAN - 2]
    found += _watched(rng, began, ended)
    # What is told last has no length yet: nobody can say what it is worth, and the other engine counts it all the same.
    last = max((at for at, *_ in found), default=began)
    return [*found, (last + 1, "autoscaler", {"name": "last", "aimsAt": "StreamApp"})]


def disorder(folder: Path, seed: int, apps: int) -> list[Path]:
    """Write the record of so many applications in six files; give them, in order of time."""
    rng = Random(seed)  # noqa: S311 - it makes up a test
    lines: list[tuple[float, str, str]] = []
    for number in range(apps):
        middle = rng.uniform(0, SPAN)
        lives = [(0.0, SPAN)] if number % 3 else [(0.0, middle), (middle, SPAN)]
        for life, (began, ended) in enumerate(lives):
            head = {"v": 1, "cluster": "made-up", "namespace": NAMESPACE, "app": f"odd-{number}"}
            lines += _written(rng, {**head, "uid": f"{number}-{life}"}, began, ended)
    return _files(folder, list(_numbered(lines)))


def _written(rng: Random, head: Mapping[str, object], began: float, ended: float) -> Iterator[tuple[float, str, str]]:
    """Give the lines of one application with the time of writing and the recorder; two recorders take turns."""
    # The second recorder does not wait until the first has ended.
    handover, overlap = rng.uniform(began, ended), rng.choice((0.0, 600.0))
    for at, kind, fields in _life(rng, began, ended):
        is_first = at < handover + rng.uniform(-overlap, overlap)
        recorder = f"odd-{'ab'[not is_first]}"
        line = {**head, "ts": _time(at), "recorder": recorder, "seq": 0, "kind": kind, **fields}
        # A clock that is set back: a later line has an earlier time.
        yield at + rng.choice((0.0, 0.0, 0.0, 90.0)), recorder, json.dumps(line)


def _numbered(lines: Iterable[tuple[float, str, str]]) -> Iterator[tuple[float, str]]:
    """Give each line its number, by recorder, in the order of writing."""
    numbers: dict[str, int] = {}
    for at, recorder, text in sorted(lines):
        numbers[recorder] = numbers.get(recorder, -1) + 1
        numbered = json.dumps({**json.loads(text), "seq": numbers[recorder]})
        RECORD.validate_json(numbered)
        yield at, numbered


def _files(folder: Path, texts: Sequence[tuple[float, str]]) -> list[Path]:
    """Write six files, each with a sixth of the time."""
    paths = []
    for part in range(6):
        own = [
            text for at, text in texts if part * SPAN / 6 <= at < (part + 1) * SPAN / 6 or (part == 5 and at >= SPAN)
        ]
        path = folder / f"odd-{part}.jsonl.gz"
        path.write_bytes(gzip.compress("".join(f"{text}\n" for text in own).encode(), mtime=0))
        paths.append(path)
    return paths
