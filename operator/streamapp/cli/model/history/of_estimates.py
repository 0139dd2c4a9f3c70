"""How far the estimated times of releases were off: each estimate on record beside the step that came. Pure.

The pipeline scores the estimates of 28 days (`streamapp.analytics.insight.scores`), by the same rule: the truth of an
estimate is the next step of its hold, and each hold weighs the same, however often it was looked at.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate

from streamapp.api.http.messages import Recorded
from streamapp.cli.model.phrases import counted
from streamapp.cli.text import durations

_SHARES = (0.1, 0.5, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateErrors:
    """Seconds from the estimated release to the release; positive: the pod went later than estimated."""

    p10: float
    p50: float
    p90: float
    estimates: int
    """Estimates whose release is on record; the operator's answer has the first of each stretch of estimates."""
    holds: int
    """Of these holds."""

    @property
    def sentence(self) -> str:
        """The figures for a person."""
        off = ", ".join(f"{_late(each)} (P{share * 100:.0f})" for share, each in self._by_share)
        return f"{counted(self.estimates, 'estimate')} in {counted(self.holds, 'hold')}: pods went {off}."

    @property
    def document(self) -> dict[str, float]:
        """The figures for programs, in seconds."""
        errors = {f"p{share * 100:.0f}ErrorSeconds": round(each, 1) for share, each in self._by_share}
        return {**errors, "estimates": self.estimates, "holds": self.holds}

    @property
    def _by_share(self) -> Sequence[tuple[float, float]]:
        return tuple(zip(_SHARES, (self.p10, self.p50, self.p90), strict=True))


def estimate_errors(lines: Iterable[Recorded], uid: str) -> EstimateErrors | None:
    """The errors of all estimates of a StreamApp; None if no estimated hold came to a step.

    Args:
        lines: Of the flight record, in any order.
        uid: Of the StreamApp.
    """
    by_hold: dict[str, list[Recorded]] = defaultdict(list)
    for line in sorted(lines, key=lambda line: line.ts):
        if line.kind == "decision" and line.uid == uid and line.hold_id:
            by_hold[line.hold_id].append(line)
    errors = {hold_id: found for hold_id, decisions in by_hold.items() if (found := _of_hold(decisions))}
    if not errors:
        return None
    p10, p50, p90 = _quantiles(errors)
    return EstimateErrors(p10=p10, p50=p50, p90=p90, estimates=sum(map(len, errors.values())), holds=len(errors))


def _of_hold(decisions: Sequence[Recorded]) -> list[float]:
    steps = [line.ts for line in decisions if line.verdict == "Step"]
    looks = [(line.ts, line.eta_seconds) for line in decisions if line.verdict == "Hold"]
    released = [(at, eta, next((step for step in steps if step > at), None)) for at, eta in looks if eta is not None]
    return [(step - at).total_seconds() - eta for at, eta, step in released if step is not None]


def _quantiles(errors: Mapping[str, Sequence[float]]) -> tuple[float, ...]:
    weighed = sorted((error, 1 / len(found)) for found in errors.values() for error in found)
    reached = list(accumulate(weight for _, weight in weighed))
    # A little less than the share, lest a sum's rounding takes the next value.
    least = [next(at for at, sum_ in enumerate(reached) if sum_ >= reached[-1] * share - 1e-9) for share in _SHARES]
    return tuple(weighed[at][0] for at in least)


def _late(seconds: float) -> str:
    span = durations.fine(timedelta(seconds=abs(seconds)))
    return f"{span} {'late' if seconds >= 0 else 'early'}"
