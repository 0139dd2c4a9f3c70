"""The settings that a what-if can change, and how long a pod would have stayed undesired under them. Pure."""

from dataclasses import dataclass
from enum import Enum
from math import inf

from streamapp.analytics.report.amounts import count, duration
from streamapp.analytics.report.whatif.facts import Absence, Facts, Usual


@dataclass(frozen=True, slots=True)
class Policy:
    """Other settings; None leaves what was in force at each time."""

    window_s: float | None = None
    """`scaleDown.stabilizationWindow` of the StreamApp."""
    lag: int | None = None
    """`learners.acceptableRecoveryLag`, in slots."""
    least: int | None = None
    """Fewest pods that an autoscaler can desire."""
    most: int | None = None

    def __post_init__(self) -> None:
        """Check the bounds.

        Raises:
            ValueError: they exclude each other.
        """
        if self.least is not None and self.most is not None and self.least > self.most:
            raise ValueError(f"the least number of pods, {self.least}, is above the most, {self.most}")

    @property
    def title(self) -> str:
        """The settings that differ, as text."""
        if self.least is not None and self.least == self.most:
            bounds = [f"always {_pods(self.least)}"]
        else:
            given = (("at least", self.least), ("at most", self.most))
            bounds = [f"{word} {_pods(number)}" for word, number in given if number is not None]
        window = [] if self.window_s is None else [f"window {duration(self.window_s)}"]
        lag = [] if self.lag is None else [f"lag {count(self.lag)}"]
        return ", ".join([*window, *lag, *bounds]) or "as it was"

    def clipped(self, desired: int) -> int:
        """The desired replicas within the bounds."""
        raised = desired if self.least is None else max(desired, self.least)
        return raised if self.most is None else min(raised, self.most)


class Case(Enum):
    """What is taken for a stay of which the record does not say how long it would have been."""

    SHORT = "a tenth of what was seen was shorter"
    USUAL = "half of it was"
    LONG = "nine tenths of it were"

    def of(self, usual: Usual) -> float:
        """The stay in seconds."""
        return {Case.SHORT: usual.low, Case.USUAL: usual.mid, Case.LONG: usual.high}[self]


def stay_s(facts: Facts, absence: Absence, policy: Policy, case: Case) -> float:
    """Seconds for which a pod would have stayed undesired, were it not desired again before.

    It is the window, and the rest that was seen beyond it. Where the pod was desired again before it went, the rest
    is what is usual, and no less than was seen; infinite if too little was seen, or a user kept the pod.
    """
    rest = absence.rest_s
    if rest is None:
        usual = None if absence.is_kept else facts.usual_rest
        if usual is None:
            return inf
        rest = max(case.of(usual), absence.least_rest_s)
    window = absence.setting.window_s if policy.window_s is None else policy.window_s
    return max(0.0, window + _by_lag(facts, absence, policy, case, rest))


def _by_lag(facts: Facts, absence: Absence, policy: Policy, case: Case, rest: float) -> float:
    """The rest under another lag limit."""
    limit = absence.setting.lag
    if policy.lag is None or limit is None or policy.lag == limit:
        return rest
    if policy.lag < limit:
        return rest + _catch_up_s(facts, limit - policy.lag, case, has_waited=bool(absence.looks))
    near = absence.within(policy.lag)
    if near is None:
        return rest
    if absence.gone is not None:
        return rest - max(0.0, absence.looks_end - near)
    return min(rest, near + facts.usual_after_s - absence.began - absence.setting.window_s)


def _catch_up_s(facts: Facts, slots: int, case: Case, *, has_waited: bool) -> float:
    """Seconds to restore what a smaller limit asks for; no less than nothing, as copies can have been nearer."""
    if case is Case.SHORT or (case is Case.USUAL and not has_waited):
        return 0.0
    rate = facts.usual_rate if case is Case.USUAL else facts.slow_rate
    return slots / rate if rate else 0.0


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"
