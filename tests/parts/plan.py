"""The plan of all tests: which stages the gate has, which parts there are, and which of them runs a test.

`plan.toml` is the data. A test belongs to a stage by its file and its marks, so that the plan can be asked without
running anything; `test_every_test_is_in_the_gate_or_in_a_part` asks it for every test that pytest collects.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from lab.settings import REPOSITORY

TIERS = frozenset(
    {
        "alerts", "analytics", "brokers", "chart", "hostile", "judge", "lab", "lifecycle", "model", "proofs",
        "registries", "release", "slow",
    }
)  # fmt: skip
"""Marks of tests that are no unit tests; `addopts` of `pyproject.toml` leaves out the same."""

IN_LAB = ("lab", "proofs")
"""Marks of tests that need the running lab."""

Name = Annotated[str, StringConstraints(pattern="^[a-z0-9-]+$")]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Stage(_Table):
    """Commands, then tests of one kind; the first that fails ends it."""

    commands: tuple[str, ...] = ()
    """For bash, from the top of the repository."""
    tests: tuple[str, ...] = ()
    """Files and folders; a star stands for any letters of a file's name."""
    without: tuple[str, ...] = ()
    """Of these, files and folders that are left out."""
    marks: tuple[str, ...] = ()
    """A test must have all of these; without any it must be a unit test, in the lab a test of the lab."""
    no_marks: tuple[str, ...] = ()
    """A test must have none of these."""
    is_in_lab: bool = False
    """Whether the lab is brought up for the tests, and taken down after them."""
    keeps_lab: bool = False
    """Whether the lab stays up for the next stage, and one that is up is used."""
    workers: int = 1
    """Processes that share the tests."""
    by_file: bool = False
    """Whether one worker runs all tests of a file."""
    is_random: bool = False
    """Whether the order of the tests is drawn, and the seed goes into the record."""
    repeats: bool = False
    """Whether a test may begin once more if something that had to appear did not appear in time.

    What is asserted of data, writes, records and refusals is never repeated.
    """
    yields: bool = False
    """Whether stages beside it come first: it computes without a wait, while they wait for what must appear in time."""
    environment: Mapping[str, str] = {}

    @model_validator(mode="after")
    def _has_something_to_run(self) -> "Stage":
        if not self.commands and not self.tests:
            raise ValueError("a stage needs `commands` or `tests`")
        return self

    @property
    def expression(self) -> str:
        """The marks as pytest's option `-m` takes them."""
        if self.is_in_lab and not self.marks:
            return f"({' or '.join(IN_LAB)})"
        without = (*self.no_marks, *(() if self.marks else sorted(TIERS)))
        return " and ".join((*self.marks, *(f"not {mark}" for mark in without)))

    def has(self, file: str, marks: Iterable[str]) -> bool:
        """Say whether a test of this file with these marks is among its tests."""
        found = set(marks)
        if not found.issuperset(self.marks) or found.intersection(self.no_marks):
            return False
        if not self.marks and (found.isdisjoint(IN_LAB) if self.is_in_lab else found & TIERS):
            return False
        return _names(self.tests, file) and not _names(self.without, file)


def _names(places: Iterable[str], file: str) -> bool:
    path = PurePosixPath(file)
    return any(each.match(place) for place in places for each in (path, *path.parents))


class Part(_Table):
    """What is not in the gate, and is due when files of its paths have changed."""

    what: str
    """What it shows, for who chooses one."""
    paths: tuple[str, ...]
    """Files and folders whose content decides whether it is due; its own tests always do.

    In the file, `@name` stands for all of a group.
    """
    stages: tuple[Stage, ...]

    @property
    def all_paths(self) -> tuple[str, ...]:
        """Its paths with those of its tests."""
        return tuple(sorted({*self.paths, *(test for stage in self.stages for test in stage.tests)}))


class Phase(_Table):
    """Lanes that run side by side; the next phase begins when all have ended."""

    lanes: tuple[tuple[Name, ...], ...]


class Plan(_Table):
    """All of it."""

    cap_minutes: int = Field(gt=0)
    """The gate is ended after so many, whatever it does then."""
    part_minutes: int = Field(gt=0)
    """The same for a part."""
    phases: tuple[Phase, ...]
    at_end: tuple[str, ...] = ()
    """Commands that end what stages keep, whatever came of them."""
    stages: Mapping[Name, Stage]
    """Those of the gate."""
    parts: Mapping[Name, Part]

    @model_validator(mode="before")
    @classmethod
    def _without_groups(cls, table: dict[str, Any]) -> dict[str, Any]:
        groups = {f"@{name}": paths for name, paths in table.get("groups", {}).items()}
        parts = {
            name: {**part, "paths": [path for each in part["paths"] for path in groups.get(each, [each])]}
            for name, part in table["parts"].items()
        }
        return {**{name: value for name, value in table.items() if name != "groups"}, "parts": parts}

    @model_validator(mode="after")
    def _runs_each_stage_once(self) -> "Plan":
        run = [name for phase in self.phases for lane in phase.lanes for name in lane]
        if sorted(run) != sorted(self.stages):
            raise ValueError(f"the lanes must have each stage once: {sorted(run)} are not {sorted(self.stages)}")
        return self

    def homes_of(self, file: str, marks: Iterable[str]) -> Iterator[str]:
        """Name the stages of the gate and the parts that run a test."""
        found = tuple(marks)
        for name, stage in self.stages.items():
            if stage.has(file, found):
                yield f"gate {name}"
        for name, part in self.parts.items():
            if any(stage.has(file, found) for stage in part.stages):
                yield name


def plan(path: Path = REPOSITORY / "tests" / "parts" / "plan.toml") -> Plan:
    """Read it.

    Raises:
        ValueError: It has a table or a value that it must not have; the text names it.
    """
    return Plan.model_validate(tomllib.loads(path.read_text()))
