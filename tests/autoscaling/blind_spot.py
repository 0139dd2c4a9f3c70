"""The tables of `docs/autoscaling.md`, computed by the model of the autoscaler.

Run as `uv run python -m tests.autoscaling.blind_spot` to write them into the page; a test compares.
"""

from collections.abc import Callable
from fractions import Fraction

from lab.settings import REPOSITORY
from tests.autoscaling.hpa_model import (
    DEFAULT,
    RECOMMENDED,
    PodUsage,
    Scale,
    by_average_value,
    by_pods,
    by_value,
)

PAGE = REPOSITORY / "docs" / "autoscaling.md"
PODS, WISH = 6, 3
"""Six pods run, three are wished for, and the scale-down is held."""
LOADS = tuple(
    Fraction(text) for text in ("3", "4", "5", "5.3", "5.4", "5.7", "5.9", "6", "6.1", "6.3", "6.6", "6.7", "7", "8")
)
"""In pods: so many would bear it exactly at the target."""

Wishes = Callable[[Scale, Fraction], int]


def evenly(load: Fraction, pods: int) -> list[PodUsage]:
    """The load, spread over ready pods."""
    return [PodUsage(load / pods)] * pods


SETTINGS: dict[str, Wishes] = {
    "CPU, tolerance 10 % (default)": lambda scale, load: by_pods(scale, evenly(load, scale.status), DEFAULT),
    "CPU, tolerance 2 %": lambda scale, load: by_pods(scale, evenly(load, scale.status), RECOMMENDED),
    "lag as `Value`": lambda scale, load: by_value(scale, load, scale.status, DEFAULT),
    "lag as `AverageValue`": lambda scale, load: by_average_value(scale, load, DEFAULT),
}


def held(wishes: Wishes, load: Fraction, *, wish: int = WISH, pods: int = PODS) -> int:
    """What is wished for while the pods are held."""
    return wishes(Scale(spec=wish, status=pods), load)


def is_wrong(wishes: Wishes, load: Fraction, *, wish: int = WISH, pods: int = PODS) -> bool:
    """Whether fewer are wished for than the same autoscaler would, if as many had been wished for as there are."""
    return held(wishes, load, wish=wish, pods=pods) < held(wishes, load, wish=pods, pods=pods)


def while_held() -> str:
    """The blind spot, cell by cell."""
    lines = [f"| Load, in pods | {' | '.join(SETTINGS)} |", f"| ---: |{' ---: |' * len(SETTINGS)}"]
    for load in LOADS:
        cells = []
        for wishes in SETTINGS.values():
            wish = held(wishes, load)
            cells.append(f"**{wish}**" if is_wrong(wishes, load) else str(wish))
        lines.append(f"| {float(load):g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def while_restoring() -> str:
    """What pods that restore add to the wish, where they are ready meanwhile and where they are not."""
    head = "| Pods that restore | desired, if they are not ready | desired, if they are ready |"
    lines = [head, "| ---: | ---: | ---: |"]
    for restoring in range(4):
        cells = [str(after_a_raise(restoring, ready=ready)) for ready in (False, True)]
        lines.append(f"| {restoring} | {' | '.join(cells)} |")
    return "\n".join(lines)


BUSY = Fraction(2)
"""The processor time of a pod that restores: twice what it is meant to use."""


def after_a_raise(restoring: int, *, ready: bool, spent: Fraction = BUSY) -> int:
    """What is wished for by CPU time while pods that were just added restore beside three that bear the load of 3."""
    pods = [*evenly(Fraction(3), 3), *[PodUsage(spent, ready)] * restoring]
    return by_pods(Scale(spec=3 + restoring, status=3 + restoring), pods, DEFAULT)


TABLES = {"while held": while_held, "while restoring": while_restoring}


def written(page: str) -> str:
    """The page with the tables as they are computed now."""
    for name, table in TABLES.items():
        begin, end = f"<!-- computed: {name} -->\n", "<!-- end -->"
        before, rest = page.split(begin)
        page = f"{before}{begin}{table()}\n{end}{rest.split(end, 1)[1]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
