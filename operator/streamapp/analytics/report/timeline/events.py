"""Incidents, in which tasks did not run, and marks of what changed: crashes, rollouts, evictions, images. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from streamapp.analytics.report.rows import AppRows, Row

TOGETHER: Final = timedelta(seconds=60)
"""Between two times in which tasks did not run, up to which they are one incident."""
MARK_TOGETHER: Final = timedelta(minutes=10)
"""Between two changes of one kind, up to which they are one mark: a rollout goes from pod to pod."""
CRASH, ROLLOUT, EVICTION, IMAGE = "crash", "rollout", "pod replaced", "image"
KINDS: Final = (CRASH, ROLLOUT, EVICTION, IMAGE)


@dataclass(frozen=True, slots=True)
class Incident:
    """Times in which tasks did not run, that touch or nearly so."""

    since: datetime
    until: datetime
    """The end of the record, if it goes on."""
    tasks: frozenset[str]
    at_least_s: float
    """Of all its tasks together, as the next one."""
    at_most_s: float
    cause: str
    """Of most of it."""
    is_open: bool
    """Whether a task did not run at the end of the record."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A change that a chart marks."""

    at: datetime
    kind: str
    """One of `KINDS`."""
    until: datetime
    """Of the last change that it stands for."""
    pods: frozenset[int]
    image: str = ""
    """The new one, of an image."""
    ends: frozenset[str] = frozenset()
    """How containers ended, of a crash: reason and exit code."""

    @property
    def text(self) -> str:
        """What it was, for people."""
        if self.kind == IMAGE:
            return f"image {self.image}"
        names = ", ".join(map(str, sorted(self.pods)))
        words = f"{self.kind}: pod {names}" if len(self.pods) == 1 else f"{self.kind}: pods {names}"
        return f"{words} ({'; '.join(sorted(self.ends))})" if self.ends else words


def incidents(outages: Iterable[Row]) -> list[Incident]:
    """The incidents of one application, those that go on first, then the longest."""
    found: list[list[Row]] = []
    end: datetime | None = None
    for row in sorted(outages, key=_began):
        if end is None or row["t_stop"] > end + TOGETHER:
            found.append([])
            end = row["t_end"]
        found[-1].append(row)
        end = row["t_end"] if end is None else max(end, row["t_end"])
    return sorted(map(_incident, found), key=lambda one: (one.is_open, one.at_most_s), reverse=True)


def _began(row: Row) -> datetime:
    at: datetime = row["t_stop"]
    return at


def _incident(rows: Sequence[Row]) -> Incident:
    causes: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        causes[row["cause"]] += row["at_most_s"]
    return Incident(
        since=rows[0]["t_stop"],
        until=max(row["t_end"] for row in rows),
        tasks=frozenset(row["task"] for row in rows),
        at_least_s=sum(row["at_least_s"] for row in rows),
        at_most_s=sum(row["at_most_s"] for row in rows),
        cause=max(causes, key=lambda cause: causes[cause]),
        is_open=any(row["is_open"] for row in rows),
    )


def marks(rows: AppRows) -> list[Mark]:
    """The marks of one application, oldest first."""
    single = [*_pods(rows["s_pod_interval"]), *_images(rows["s_config"])]
    found: list[Mark] = []
    for kind in KINDS:
        for mark in sorted((one for one in single if one.kind == kind), key=lambda one: one.at):
            last = found[-1] if found and found[-1].kind == kind else None
            if last is not None and kind != IMAGE and mark.at - last.until <= MARK_TOGETHER:
                found[-1] = replace(last, until=mark.until, pods=last.pods | mark.pods, ends=last.ends | mark.ends)
            else:
                found.append(mark)
    return sorted(found, key=lambda one: one.at)


def _pods(states: Iterable[Row]) -> Iterable[Mark]:
    """As silver says what stopped tasks: a container or a pod in place of another one of its ordinal."""
    ordered = sorted(states, key=lambda row: (row["ordinal"], row["t_start"]))
    for old, new in pairwise(ordered):
        if old["ordinal"] != new["ordinal"] or old["t_end"] != new["t_start"]:
            continue
        kind = _change(old, new)
        if kind:
            at = _ended(old, new) if kind == CRASH else new["t_start"]
            ends = frozenset({_end(new)} - {""}) if kind == CRASH else frozenset()
            yield Mark(at, kind, new["t_start"], frozenset({new["ordinal"]}), ends=ends)


def _change(old: Row, new: Row) -> str:
    def differs(name: str) -> bool:
        return bool(old[name] and new[name] and old[name] != new[name])

    if old["is_gone"] and old["t_end"] - old["t_start"] > MARK_TOGETHER:
        return ""  # A scale-up brought the ordinal back.
    if old["pod_uid"] == new["pod_uid"]:
        return CRASH if differs("container_id") else ""
    return ROLLOUT if differs("revision") else EVICTION


def _ended(old: Row, new: Row) -> datetime:
    """When the container ended, if the record tells it: the operator sees the new one later."""
    at: datetime = new["t_start"]
    ended: datetime | None = new["ended_at"]
    return ended if ended is not None and old["t_start"] <= ended <= at else at


def _end(pod: Row) -> str:
    code = "" if pod["exit_code"] is None else f"exit code {pod['exit_code']}"
    return ", ".join(filter(None, (pod["end_reason"], code)))


def _images(configs: Iterable[Row]) -> Iterable[Mark]:
    known = [row for row in sorted(configs, key=lambda row: row["valid_from"]) if row["image"]]
    for old, new in pairwise(known):
        if old["image"] != new["image"]:
            yield Mark(new["valid_from"], IMAGE, new["valid_from"], frozenset(), new["image"])


def newest(of_apps: Iterable[tuple[str, Sequence[Incident]]], since: datetime) -> list[tuple[str, Incident]]:
    """The incidents of all applications that go on or ended after a time: those that go on first, then the worst."""
    found = [(title, one) for title, every in of_apps for one in every if one.is_open or one.until >= since]
    return sorted(found, key=lambda pair: (pair[1].is_open, pair[1].at_most_s), reverse=True)
