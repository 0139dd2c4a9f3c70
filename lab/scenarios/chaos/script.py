"""What happens in a run of chaos, and when: drawn from a seed alone, so that the same seed plays the same script.

Each danger has a stream of its own, so that another danger added to the table leaves the others where they were. What
an act finds when its time has come is the cluster's: the pod that it names may not be there, and the act is skipped.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

LEAST, MOST = 2, 4
"""Replicas that are written."""


class Danger(StrEnum):
    """One way in which an application is disturbed."""

    REPLICAS = "replicas"
    KILL = "kill"
    OUT_OF_MEMORY = "out-of-memory"
    DELETE = "delete"
    EVICT = "evict"
    DRAIN = "drain"
    ROLLOUT = "rollout"
    RESTART = "restart"
    RESTART_ANEW = "restart-anew"
    OPERATOR_KILLED = "operator-killed"
    OPERATOR_FROZEN = "operator-frozen"
    BROKER_FROZEN = "broker-frozen"
    SLOW_API = "slow-api"
    NODE_LOST = "node-lost"


@dataclass(frozen=True)
class Habit:
    """How often a danger comes."""

    least: float
    most: float
    """Seconds between two of them."""
    is_of_each: bool = False
    """Whether each application has its own stream; otherwise one is drawn for each act."""
    lasts: tuple[float, float] = (0.0, 0.0)
    """Seconds for which it goes on, where that is chosen."""


HABITS: dict[Danger, Habit] = {
    Danger.REPLICAS: Habit(15, 60, is_of_each=True),
    Danger.KILL: Habit(40, 110),
    Danger.OUT_OF_MEMORY: Habit(110, 220),
    Danger.DELETE: Habit(80, 180),
    Danger.EVICT: Habit(40, 100),
    Danger.DRAIN: Habit(90, 180),
    Danger.ROLLOUT: Habit(100, 220),
    Danger.RESTART: Habit(100, 220),
    Danger.RESTART_ANEW: Habit(160, 400),
    Danger.OPERATOR_KILLED: Habit(90, 220),
    Danger.OPERATOR_FROZEN: Habit(140, 280, lasts=(8, 25)),
    Danger.BROKER_FROZEN: Habit(150, 300, lasts=(2, 8)),
    Danger.SLOW_API: Habit(140, 280, lasts=(10, 25)),
    Danger.NODE_LOST: Habit(200, 300, lasts=(5, 20)),
}
OF_THE_CLUSTER = frozenset(
    {
        *(Danger.DRAIN, Danger.OPERATOR_KILLED, Danger.OPERATOR_FROZEN, Danger.BROKER_FROZEN, Danger.SLOW_API),
        Danger.NODE_LOST,
    }
)
"""Those that strike every application."""


@dataclass(frozen=True)
class Act:
    """One thing that is done."""

    at: float
    """Seconds since the begin of the run."""
    danger: Danger
    application: str | None = None
    """Whom it strikes; None: all."""
    number: int = 0
    """Replicas to write, the ordinal of a pod, or which of the nodes; 0 where there is nothing to choose."""
    seconds: float = 0.0
    """How long it goes on, where that is chosen."""

    def __str__(self) -> str:
        """Name it in one line."""
        whom = f" {self.application}" if self.application else ""
        return f"{self.at:5.1f} s {self.danger}{whom} {self.number}"


def script(seed: int, seconds: float, applications: Sequence[str]) -> tuple[Act, ...]:
    """Draw all acts of a run, in the order of their time.

    Args:
        seed: The same one gives the same acts.
        seconds: How long the run takes; no act comes later.
        applications: Names of the applications, in a fixed order.
    """
    acts = [act for danger in Danger for act in _of_danger(seed, danger, seconds, applications)]
    return tuple(sorted(acts, key=lambda act: (act.at, act.danger, act.application or "")))


def _of_danger(seed: int, danger: Danger, seconds: float, applications: Sequence[str]) -> Iterator[Act]:
    if HABITS[danger].is_of_each:
        for name in applications:
            yield from _stream(random.Random(f"{seed}:{danger}:{name}"), danger, seconds, [name])  # noqa: S311 (a script)
    else:
        yield from _stream(random.Random(f"{seed}:{danger}"), danger, seconds, applications)  # noqa: S311 (a script)


def _stream(draw: random.Random, danger: Danger, seconds: float, applications: Sequence[str]) -> Iterator[Act]:
    habit = HABITS[danger]
    # The first of each can come early: otherwise a short run would miss the rare ones.
    at = draw.uniform(0, habit.most)
    while at < seconds:
        name, number, lasts = draw.choice(applications), _number(draw, danger), draw.uniform(*habit.lasts)
        yield Act(round(at, 1), danger, None if danger in OF_THE_CLUSTER else name, number, round(lasts, 1))
        at += draw.uniform(habit.least, habit.most)


def _number(draw: random.Random, danger: Danger) -> int:
    if danger is Danger.REPLICAS:
        return draw.randint(LEAST, MOST)
    return draw.randrange(2 if danger is Danger.DRAIN else MOST)
