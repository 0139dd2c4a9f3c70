"""One piece of advice, and how sure it is. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Effect:
    """What following the advice would have changed on the days looked at."""

    low: float
    mid: float
    high: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One thing to change of one application, or nothing."""

    knob: str
    """What to change, for example `HorizontalPodAutoscaler scaleUp window`; empty if there is nothing to advise."""
    current: str
    proposed: str
    evidence: str
    """The figures, as a sentence."""
    days: int
    """UTC days looked at."""
    n: int
    """Cases that the figures are made of."""
    effect: Effect | None = None
    vetoes: tuple[str, ...] = ()
    """What speaks against it, and must be looked at first."""
    patch: Mapping[str, Any] | None = None
    """A merge patch of the object that `object` names; None if no field of Kubernetes does it."""
    object: str = ""
    """Kind of the object to patch."""
    name: str = "NAME"
    """Of the object to patch, if it is known."""
    node: str = ""
    """Where it shows; empty if it belongs to no node, or that is unknown."""

    @property
    def text(self) -> str:
        """All of it in a few lines."""
        if self.is_empty:
            return f"nothing to advise: {self.evidence}"
        lines = [f"{self.knob}: {self.current} → {self.proposed}", f"{self.evidence} (n {self.n}, {self.days} days)"]
        if self.effect:
            span = f"{self.effect.low:.3g} to {self.effect.high:.3g}"
            lines.append(f"effect: {self.effect.mid:.3g} ({span}) {self.effect.unit}")
        lines += [f"look first: {veto}" for veto in self.vetoes]
        if self.patch:
            lines.append(f"kubectl patch {self.object.lower()} {self.name} --type merge -p '{json.dumps(self.patch)}'")
        return "\n    ".join(lines)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to advise."""
        return not self.knob
