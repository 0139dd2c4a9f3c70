"""A made-up flight record of a fleet, line for line as the operator's recorder writes it, with planted facts.

Called by the command line, by tests and by the bench. Columns of numbers become lines by whole columns at a time.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamapp.analytics.synthetic.fleet import DAY, Fleet, SyntheticApp, Truth, make_apps, truth
from streamapp.analytics.synthetic.story import Samples, Story

MICROS: Final = 1_000_000
CLUSTER, NAMESPACE = "made-up", "fleet"
ROLES = pa.array([f'"role":"{role}"' for role in ('ACTIVE","state":"RUNNING', "STANDBY", "LEARNER")])
BUG_SHARE: Final = 0.03
ONE_LOOK: Final = ("look", "app", "since")
"""Samples that have these in common are in one line."""
ALIKE: Final = ("ts", "ordinal", "role", "interval")
"""Samples of one line that have these in common differ in task and offsets alone."""


class Looks(NamedTuple):
    """Lines of samples: microseconds, application, and what comes after the number."""

    at: NDArray[np.int64]
    app: NDArray[np.int64]
    tails: pa.Array


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
        self.tasks = pa.array([f'"{task}"' for app in apps for task in app.tasks])
        self.processes = pa.array([f'{{"processId":"{one}","ordinal":' for app in apps for one in app.processes])
        self.per_app = len(apps[0].tasks), len(apps[0].processes)
        self.rng = np.random.default_rng([fleet.seed, day, 2])

    def write(self, samples: Samples, lines: list[tuple[int, int, str]], folder: Path) -> Iterator[tuple[Path, int]]:
        """A file for each few minutes, and one of the samples in them."""
        began = int(self.day * DAY * MICROS)
        step = int(self.fleet.file_seconds * MICROS)
        line_at = np.array([line[0] for line in lines], dtype=np.int64)
        edges = np.arange(began, began + int(DAY * MICROS) + 1, step)
        of_samples, of_lines = np.searchsorted(samples["ts"], edges), np.searchsorted(line_at, edges)
        own = {"kind": "recorder", "mark": "STARTED", "operatorVersion": "0.1.0"}
        first = _own_head(self._time(began), self.recorder) + "0," + json.dumps(own, separators=(",", ":"))[1:]
        seq, begun = 1, [first]
        for n in range(len(edges) - 1):
            looks = self._looks({name: column[of_samples[n] : of_samples[n + 1]] for name, column in samples.items()})
            texts = self._texts(
                looks, lines[of_lines[n] : of_lines[n + 1]], line_at[of_lines[n] : of_lines[n + 1]], seq
            )
            seq += sum(map(len, texts))
            stamp = (self.fleet.start + timedelta(microseconds=int(edges[n]))).strftime("%Y%m%dT%H%M%SZ")
            for mark, part in (("", begun + texts[0]), ("-samples", texts[1])):
                if part:
                    yield _written(folder / f"{self.recorder}-{stamp}{mark}.jsonl.gz", part), len(part)
            begun = []

    def _time(self, micros: int) -> str:
        return (self.fleet.start + timedelta(microseconds=micros)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _times(self, at: NDArray[np.int64]) -> pa.Array:
        start = int(self.fleet.start.timestamp() * MICROS)
        return pc.strftime(pa.array(at + start, pa.timestamp("us")), "%Y-%m-%dT%H:%M:%S")

    def _texts(
        self, looks: Looks, lines: list[tuple[int, int, str]], line_at: NDArray[np.int64], seq: int
    ) -> tuple[list[str], list[str]]:
        """The lines, and those of samples, each in order of time and with its number."""
        at = np.concatenate([line_at, looks.at])
        order = np.argsort(at, kind="stable")
        number = np.empty(len(at), dtype=np.int64)
        number[order] = np.arange(seq, seq + len(at))
        heads = self.heads.take(pa.array(np.concatenate([[line[1] for line in lines], looks.app]).astype(np.int64)))
        tails = pa.concat_arrays([pa.array([line[2] for line in lines], pa.string()), looks.tails])
        middle = f'Z","recorder":"{self.recorder}","seq":'
        found = pc.binary_join_element_wise(heads, self._times(at), middle, _text(number), ",", tails, "")
        parts = (order[order < len(lines)], order[order >= len(lines)])
        rest, samples = (found.take(pa.array(part)).to_pylist() for part in parts)
        return rest, samples

    def _looks(self, part: Samples) -> Looks:
        """A line for what is sampled of an application within the seconds between two looks."""
        part = {**part, "look": part["ts"] // int(self.fleet.look_seconds * MICROS)}
        order = np.lexsort([part[name] for name in (*("task", *reversed(ALIKE)), *reversed(ONE_LOOK))])
        part = {name: column[order] for name, column in part.items()}
        begins = _changes(part, ONE_LOOK)
        alike = np.union1d(begins, _changes(part, ALIKE)).astype(np.int64)
        copies = _joined_lists(self._copies(part, alike), np.searchsorted(alike, begins))
        epoch = int(self.fleet.start.timestamp() * 1000) + part["since"][begins]
        ends = np.append(begins[1:], len(part["ts"]))[: len(begins)] - 1
        tails = pc.binary_join_element_wise('"kind":"samples","epoch":', _text(epoch), ',"copies":[', copies, "]}", "")
        return Looks(part["ts"][ends], part["app"][begins].astype(np.int64), tails)

    def _copies(self, part: Samples, begins: NDArray[np.int64]) -> pa.Array:
        """Copies that have all but task and offsets in common."""
        tasks, processes = self.per_app
        app = part["app"].astype(np.int64)
        one = {name: column[begins] for name, column in part.items()}
        names = _joined_lists(self.tasks.take(pa.array(app * tasks + part["task"])), begins)
        offset = part["offset"]
        if self.fleet.bug:
            offset = np.where(self.rng.random(len(offset)) < BUG_SHARE, -1, np.maximum(offset, 0))
        offsets = _joined_lists(_text(offset), begins)
        known = pa.array((one["role"] != 0) | self.fleet.bug)
        told = pc.if_else(known, pc.binary_join_element_wise('],"offsets":[', offsets, ""), "")
        interval = np.where(one["interval"] == np.float32(self.fleet.heartbeat_seconds), 0, 1)
        spans = (self.fleet.heartbeat_seconds, self.fleet.look_seconds)
        intervals = pa.array([f',"source":"AGENT","intervalSeconds":{float(span)},"tasks":[' for span in spans])
        return pc.binary_join_element_wise(
            self.processes.take(pa.array(app[begins] * processes + one["ordinal"])),
            _text(one["ordinal"]),
            ',"at":"',
            self._times(one["ts"]),
            'Z",',
            ROLES.take(pa.array(one["role"].astype(np.int64))),
            intervals.take(pa.array(interval)),
            names,
            told,
            '],"endOffsets":[',
            _joined_lists(_text(part["end"]), begins),
            "]}",
            "",
        )


def _written(path: Path, texts: list[str]) -> Path:
    draft = path.with_suffix(".tmp")
    draft.write_bytes(gzip.compress(("\n".join(texts) + "\n").encode(), 6, mtime=0))
    draft.rename(path)
    return path


def _changes(part: Samples, names: tuple[str, ...]) -> NDArray[np.int64]:
    """Where rows begin that differ from the one before in some columns."""
    differs = np.zeros(len(part["ts"]), dtype=bool)
    differs[:1] = True
    for name in names:
        differs[1:] |= part[name][1:] != part[name][:-1]
    return np.flatnonzero(differs)


def _joined_lists(texts: pa.Array, begins: NDArray[np.int64]) -> pa.Array:
    """Texts from each of these places to the next, with commas between."""
    offsets = pa.array(np.append(begins, len(texts)).astype(np.int32))
    return pc.binary_join(pa.ListArray.from_arrays(offsets, texts), ",")


def _text(numbers: NDArray[Any]) -> pa.Array:
    return pc.cast(pa.array(numbers), pa.string())


def _head(app: SyntheticApp) -> str:
    return f'{{"v":1,"cluster":"{CLUSTER}","namespace":"{NAMESPACE}","app":"{app.name}","uid":"{app.uid}","ts":"'


def _own_head(time: str, recorder: str) -> str:
    return (
        f'{{"v":1,"cluster":"{CLUSTER}","namespace":"","app":"","uid":"","ts":"{time}","recorder":"{recorder}","seq":'
    )
