"""What was measured of the proofs: written by the commands that measure, and shown by `docs/proof-figures.md`.

`python -m tests.prove --record` and `python -m tests.prove.second_judge --record` write `figures.json`, each its part,
with the commit that it played. What follows from the tree alone is counted when the page is made.
"""

import json
import resource
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from textwrap import wrap
from typing import Any

from streamapp.core.reasons import Reason
from tests.prove import gate_mutants
from tests.prove.coverage import GUARANTEES, Coverage, every_cell
from tests.prove.judge_raises import WITHIN
from tests.prove.scene import Scene
from tests.prove.scenes import SCENES
from tests.prove.sweep import Report

FIGURES = Path(__file__).with_name("figures.json")


@dataclass(frozen=True, slots=True)
class Tree:
    """How much there is to be played, in the tree of now."""

    scenes: int
    scale_down: int
    several: int
    streams: int
    reasons: int
    gate_mutants: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What all records have."""

    commit: str
    on: str
    """The date, in UTC."""
    seed: int
    played: int
    """Stories, or examples."""
    violations: int
    seconds: int
    processor_seconds: int
    """Of all processes together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raises:
    """How long raises took while something befell the operator, in seconds."""

    befell: str
    raises: int
    median: float
    late: float
    """95 % took no longer."""
    worst: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept(Played):
    """Of a sweep."""

    tree: Tree
    guarantees: Mapping[str, int]
    """In how many stories each was at stake."""
    reasons_never: Sequence[str]
    cells: int
    """Of the state table, that were visited."""
    raises: Sequence[Raises]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined(Played):
    """Of the second judge."""

    steps: int
    virtual_seconds: int


def tree() -> Tree:
    """Count what there is."""
    return Tree(
        scenes=len(SCENES),
        scale_down=sum(map(_scales_down, SCENES.values())),
        several=sum(1 for scene in SCENES.values() if scene.others),
        streams=sum(1 for scene in SCENES.values() if scene.streams),
        reasons=len(Reason),
        gate_mutants=len(gate_mutants.every_gate()),
    )


def _scales_down(scene: Scene) -> bool:
    """Whether its users lower the desired replicas of a StreamApp at any time."""
    desired = {"": scene.replicas, **{str(number): one.replicas for number, one in enumerate(scene.others, start=1)}}
    for one in sorted(scene.happens, key=lambda each: each.number):
        what, _, whose = one.what.partition("@")
        if what == "wish" and one.which < desired.get(whose, 0):
            return True
        if what == "wish":
            desired[whose] = one.which
    return False


def sweep_of(report: Report, seed: int, seconds: float) -> Swept:
    """What a sweep gave, that has just ended in this process.

    Raises:
        SystemExit: The tree has changes that no commit has.
    """
    covered = Coverage(report.visited)
    cells = list(every_cell())
    return Swept(
        **_played(seed, report.runs, len(report.failed), seconds),
        tree=tree(),
        guarantees={str(number): report.visited.get(f"guarantee {number}", 0) for number in GUARANTEES},
        reasons_never=[one.removeprefix("reason ") for one in covered.never(f"reason {each.name}" for each in Reason)],
        cells=len(cells) - len(covered.never(cells)),
        raises=[_raises(befell.value, sorted(report.raises[befell])) for befell in WITHIN if report.raises.get(befell)],
    )


def examined(seed: int, examples: int, violations: int, seconds: float, steps: int, virtual: float) -> Examined:
    """What the second judge gave, that has just ended in this process.

    Raises:
        SystemExit: The tree has changes that no commit has.
    """
    return Examined(**_played(seed, examples, violations, seconds), steps=steps, virtual_seconds=round(virtual))


def _raises(befell: str, delays: Sequence[float]) -> Raises:
    median, late, worst = (round(delays[round(share * (len(delays) - 1))], 2) for share in (0.5, 0.95, 1.0))
    return Raises(befell=befell, raises=len(delays), median=median, late=late, worst=worst)


def _played(seed: int, played: int, violations: int, seconds: float) -> dict[str, Any]:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "commit": _commit(),
        "on": f"{datetime.now(UTC):%Y-%m-%d}",
        "seed": seed,
        "played": played,
        "violations": violations,
        "seconds": round(seconds),
        "processor_seconds": round(sum(one.ru_utime + one.ru_stime for one in used)),
    }


def _commit() -> str:
    def told(*words: str) -> str:
        return subprocess.run(["git", *words], check=True, capture_output=True, text=True, cwd=FIGURES.parent).stdout

    if told("status", "--porcelain", "--untracked-files=no").strip():
        raise SystemExit("figures are recorded of a commit, and the tree has changes; commit them first")
    return told("rev-parse", "--short=8", "HEAD").strip()


def write(name: str, figures: Swept | Examined) -> None:
    """Put one record in place of the last of its name."""
    known = read()
    FIGURES.write_text(json.dumps({**known, name: asdict(figures)}, indent=2, sort_keys=True) + "\n")


def read() -> dict[str, dict[str, Any]]:
    """All records, by name, as they lie there."""
    found: dict[str, dict[str, Any]] = json.loads(FIGURES.read_text()) if FIGURES.is_file() else {}
    return found


def page() -> Iterator[str]:
    """The lines of the page below its heading."""
    now, kinds = tree(), Counter(gate_mutants.LEDGER[one].status for one in gate_mutants.every_gate())
    yield "## In the tree"
    yield ""
    yield "| What | Number |"
    yield "| --- | ---: |"
    yield f"| scenes of the sweep | {now.scenes} |"
    yield f"| of these, scale down | {now.scale_down} |"
    yield f"| of these, with several StreamApps | {now.several} |"
    yield f"| of these, with the `streams` protocol | {now.streams} |"
    yield f"| reasons | {now.reasons} |"
    yield f"| mutants of gates | {now.gate_mutants} |"
    for kind in gate_mutants.KINDS:
        yield f"| of these, {kind} | {kinds[kind]} |"
    for name, record in sorted(read().items()):
        yield ""
        yield f"## Measured: {name}"
        yield ""
        yield from _measured(record)


def _measured(record: Mapping[str, Any]) -> Iterator[str]:
    each = record["processor_seconds"] / max(1, record["played"])
    rows = {
        "Commit, date": f"`{record['commit']}`, {record['on']}",
        "Seed": record["seed"],
        "Examples" if "steps" in record else "Stories": f"{record['played']:,}",
        "Violations": record["violations"],
        "Duration": f"{record['seconds']:,} s",
        "Processor time": f"{record['processor_seconds']:,} s, {each * 1000:.0f} ms each",
    }
    if "steps" in record:
        rows["Steps, virtual time"] = f"{record['steps']:,}, {record['virtual_seconds']:,} s"
    else:
        seen = record["tree"]["reasons"] - len(record["reasons_never"])
        rows["Scenes"] = record["tree"]["scenes"]
        rows["Reasons visited"] = f"{seen} of {record['tree']['reasons']}"
        rows["Cells of the state table visited"] = f"{record['cells']} of {len(list(every_cell()))}"
        at_stake = (f"{number}: {count:,}" for number, count in record["guarantees"].items() if count)
        rows["Stories in which a guarantee was at stake"] = ", ".join(at_stake)
    yield "| | |"
    yield "| --- | --- |"
    yield from (f"| {name} | {value} |" for name, value in rows.items())
    if record.get("raises"):
        yield ""
        yield "| Raises, while | Raises | Median | 95 % | Worst |"
        yield "| --- | ---: | ---: | ---: | ---: |"
        for one in record["raises"]:
            times = " | ".join(f"{one[at]:.2f} s" for at in ("median", "late", "worst"))
            yield f"| {one['befell']} | {one['raises']:,} | {times} |"
    if record.get("reasons_never"):
        yield ""
        yield "No story visited:"
        yield ""
        yield "```text"
        yield from wrap(" ".join(record["reasons_never"]), 100)
        yield "```"
