"""Advice about raises of an autoscaler that brought no throughput. Pure."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from streamapp.analytics.report.advice.facts import Facts
from streamapp.analytics.report.advice.model import Advice, Effect
from streamapp.analytics.report.amounts import rate, share
from streamapp.analytics.report.facts import AUTOSCALERS
from streamapp.analytics.report.rows import Row

LEAST_RAISES: Final = 5
"""Of which the throughput before and after is known."""
GAIN: Final = 0.05
"""By which a raise must raise the throughput, to be of use."""


def useless_raises(facts: Facts) -> Iterator[Advice]:
    """The smallest number of pods from which on raises of an autoscaler raised the throughput in the median by less."""
    known = [
        row
        for row in facts.rows["g_raise"]
        if row["actor"] in AUTOSCALERS and row["rate_before"] and row["rate_after"] is not None
    ]
    for pods in sorted({row["from_replicas"] for row in known}):
        cases = [row for row in known if row["from_replicas"] >= pods]
        gains = [_gain(row) for row in cases]
        if len(cases) >= LEAST_RAISES and median(gains) < GAIN:
            yield _advice(facts, pods, cases, gains)
            return


def _gain(row: Row) -> float:
    gain: float = row["rate_after"] / row["rate_before"] - 1
    return gain


def _advice(facts: Facts, pods: int, cases: Sequence[Row], gains: Sequence[float]) -> Advice:
    useless = sum(gain < GAIN for gain in gains)
    hours = [(row["pod_h"], gain) for row, gain in zip(cases, gains, strict=True)]
    before, after = (median(row[name] for row in cases) for name in ("rate_before", "rate_after"))
    return Advice(
        knob="raises without throughput",
        current=f"raises from {pods} pods on",
        proposed=f"at most {pods} pods, until the busiest pod has less to do",
        evidence=f"{useless} of {len(cases)} raises from {pods} pods on raised what the changelogs take by less than "
        f"{share(GAIN)}: in the median {rate(before)} slots/s before and {rate(after)} after",
        days=facts.days,
        n=len(cases),
        effect=Effect(
            sum(spent for spent, gain in hours if gain < 0),
            sum(spent for spent, gain in hours if gain < GAIN),
            sum(spent for spent, _ in hours),
            "pod-hours fewer",
        ),
        vetoes=(
            "if the application kept up before, its throughput is its input: see that the input had a lag then",
            "what is not written to a changelog does not count here",
            "the autoscaler's metric can be something else that more pods improve, such as processor time",
        ),
        patch={"spec": {"maxReplicas": pods}},
        object="HorizontalPodAutoscaler",
        name=facts.autoscaler,
    )
