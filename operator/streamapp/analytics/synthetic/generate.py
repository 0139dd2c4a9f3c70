"""A made-up flight record of a fleet, line for line as the operator's recorder writes it, with planted facts.

Called by the command line, by tests and by the bench. Columns of numbers become lines by whole columns at a time.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamapp.analytics.synthetic.fleet import DAY, Fleet, SyntheticApp, Truth, make_apps, truth
from streamapp.analytics.synthetic.story import UNKNOWN, Samples, Story

MICROS: Final = 1_000_000
CLUSTER, NAMESPACE = "made-up", "fleet"
ROLES = pa.array([f'"role":"{role}"' for role in ('ACTIVE","state":"RUNNING', "STANDBY", "LEARNER")])
BUG_SHARE: Final = 0.03


def write_record(fleet: Fleet, folder: Path) -> Iterator[tuple[Path, int]]:
    """Write the record into a folder, with `truth.json` beside it; give each file and its lines.

    Raises:
        OSError: the folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    apps = make_apps(fleet)
    (folder / "truth.json").write_text(json.dumps(asdict(truth(fleet, apps)), indent=1) + "\n")
    stories = []
    for app in apps:
        story = Story(fleet, app, np.random.default_rng([fleet.seed, app.index, 1]))
        story.tell()
        stories.append(story)
    samples, lines = _columns(stories), _lines(stories)
    for day in range(fleet.days):
        yield from _Day(fleet, apps, day).write(samples, lines, folder)


def planted(folder: Path) -> Truth:
    """The facts that `generate` planted in a folder."""
    told = json.loads((folder / "truth.json").read_text())
    return Truth(**{**told, "sick_volume": tuple(told["sick_volume"])})


def _columns(stories: list[Story]) -> Samples:
    """The samples of all applications, in order of time."""
    parts = [{**part, "app": np.full(len(part["ts"]), s.app.index)} for s in stories for part in s.samples]
    together = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(together["ts"], kind="stable")
    return {name: column[order] for name, column in together.items()}


def _lines(stories: list[Story]) -> list[tuple[int, int, str]]:
    """All other lines, in order of time: microseconds, application, and what comes after the number."""
    found = []
    for story in stories:
        for at, kind, tail in story.lines:
            rest = json.dumps({"kind": kind, **tail}, separators=(",", ":"))[1:]
            found.append((int(at * MICROS), story.app.index, rest))
    return sorted(found, key=lambda line: line[0])


class _Day:
    """A day of the record: another recorder writes each."""

    def __init__(self, fleet: Fleet, apps: list[SyntheticApp], day: int) -> None:
        self.fleet, self.day = fleet, day
        self.recorder = f"streamapp-operator-0_{day:04d}"
        self.heads = pa.array([_head(app) for app in apps])
        self.tasks = pa.array([f'"task":"{task}",' for app in apps for task in app.tasks])
        self.processes = pa.array([f',"processId":"{one}"' for app in apps for one in app.processes])
        self.per_app = len(apps[0].tasks), len(apps[0].processes)
        self.rng = np.random.default_rng([fleet.seed, day, 2])

    def write(self, samples: Samples, lines: list[tuple[int, int, str]], folder: Path) -> Iterator[tuple[Path, int]]:
        """One file for each few minutes."""
        began = int(self.day * DAY * MICROS)
        step = int(self.fleet.file_seconds * MICROS)
        line_at = np.array([line[0] for line in lines], dtype=np.int64)
        edges = np.arange(began, began + int(DAY * MICROS) + 1, step)
        of_samples, of_lines = np.searchsorted(samples["ts"], edges), np.searchsorted(line_at, edges)
        seq = 1
        own = {"kind": "recorder", "mark": "STARTED", "operatorVersion": "0.1.0"}
        first = _own_head(self._time(began), self.recorder) + "0," + json.dumps(own, separators=(",", ":"))[1:]
        for n in range(len(edges) - 1):
            part = {name: column[of_samples[n] : of_samples[n + 1]] for name, column in samples.items()}
            texts = self._texts(part, lines[of_lines[n] : of_lines[n + 1]], line_at[of_lines[n] : of_lines[n + 1]], seq)
            seq += len(texts)
            text = "\n".join(([first] if n == 0 else []) + texts) + "\n"
            stamp = (self.fleet.start + timedelta(microseconds=int(edges[n]))).strftime("%Y%m%dT%H%M%SZ")
            path = folder / f"{self.recorder}-{stamp}.jsonl.gz"
            draft = path.with_suffix(".tmp")
            draft.write_bytes(gzip.compress(text.encode(), 6, mtime=0))
            draft.rename(path)
            yield path, len(texts) + (n == 0)

    def _time(self, micros: int) -> str:
        return (self.fleet.start + timedelta(microseconds=micros)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _texts(
        self, part: Samples, lines: list[tuple[int, int, str]], line_at: NDArray[np.int64], seq: int
    ) -> list[str]:
        at = np.concatenate([part["ts"], line_at])
        order = np.argsort(at, kind="stable")
        number = np.empty(len(at), dtype=np.int64)
        number[order] = np.arange(seq, seq + len(at))
        heads = self.heads.take(pa.array(np.concatenate([part["app"], [line[1] for line in lines]]).astype(np.int64)))
        start = int(self.fleet.start.timestamp() * MICROS)
        times = pc.strftime(pa.array(at + start, pa.timestamp("us")), "%Y-%m-%dT%H:%M:%S")
        tails = pa.concat_arrays([self._tails(part), pa.array([line[2] for line in lines], pa.string())])
        middle = f'Z","recorder":"{self.recorder}","seq":'
        found = pc.binary_join_element_wise(heads, times, middle, _text(number), ",", tails, "")
        return found.take(pa.array(order)).to_pylist()  # type: ignore[no-any-return]

    def _tails(self, part: Samples) -> pa.Array:
        tasks, processes = self.per_app
        app = part["app"].astype(np.int64)
        offset = part["offset"]
        if self.fleet.bug:
            offset = np.where(self.rng.random(len(offset)) < BUG_SHARE, -1, np.maximum(offset, 0))
        known = part["role"] != 0 if not self.fleet.bug else offset != UNKNOWN - 1
        told = pc.if_else(pa.array(known), _joined(',"offset":', offset), "")
        interval = np.where(part["interval"] == np.float32(self.fleet.heartbeat_seconds), 0, 1)
        spans = (self.fleet.heartbeat_seconds, self.fleet.look_seconds)
        intervals = pa.array([f',"source":"AGENT","intervalSeconds":{float(one)},"epoch":' for one in spans])
        epoch = int(self.fleet.start.timestamp() * 1000) + part["since"]
        return pc.binary_join_element_wise(
            '"kind":"sample",',
            self.tasks.take(pa.array(app * tasks + part["task"])),
            ROLES.take(pa.array(part["role"].astype(np.int64))),
            _joined(',"ordinal":', part["ordinal"]),
            self.processes.take(pa.array(app * processes + part["ordinal"])),
            told,
            _joined(',"endOffset":', part["end"]),
            intervals.take(pa.array(interval)),
            _text(epoch),
            "}",
            "",
        )


def _text(numbers: NDArray[Any]) -> pa.Array:
    return pc.cast(pa.array(numbers), pa.string())


def _joined(label: str, numbers: NDArray[Any]) -> pa.Array:
    return pc.binary_join_element_wise(label, _text(numbers), "")


def _head(app: SyntheticApp) -> str:
    return f'{{"v":1,"cluster":"{CLUSTER}","namespace":"{NAMESPACE}","app":"{app.name}","uid":"{app.uid}","ts":"'


def _own_head(time: str, recorder: str) -> str:
    return (
        f'{{"v":1,"cluster":"{CLUSTER}","namespace":"","app":"","uid":"","ts":"{time}","recorder":"{recorder}","seq":'
    )
