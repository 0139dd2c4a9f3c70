"""What other settings would have given, beside what was seen; and how well the same arithmetic gives what was. Pure.

The present settings come first, as calibration: where their figures are far from what was seen, no other are given.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from streamapp.analytics.report.amounts import count, duration, share
from streamapp.analytics.report.rows import AppRows
from streamapp.analytics.report.whatif.facts import Facts, Stood, Stretch, spans
from streamapp.analytics.report.whatif.policy import Case, Policy, stay_s

LARGEST_ERROR: Final = 0.15
"""Of the present settings' figures, above which no other settings are computed."""
SMALL_HELD_S: Final = 60.0
"""Seconds held whose error is no matter, a day."""
WINDOWS: Final = (0.0, 300.0, 1800.0)
LAG_FACTORS: Final = (2, 10)


@dataclass(frozen=True, slots=True)
class Range:
    """A figure for a short, a usual and a long stay of pods of which the record does not say it."""

    low: float
    mid: float
    high: float


@dataclass(frozen=True, slots=True)
class Seen:
    """The figures of gold."""

    pod_h: float
    """Hours of pods."""
    held_s: float
    stood: Stood
    """Seconds of single tasks, for scaling."""
    raises: int
    removals: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of some settings."""

    title: str
    policy: Policy
    pod_h: Range
    held_s: Range
    stood: Stood
    raises: int
    """Changes that began pods."""
    removals: int
    """Changes that ended pods."""
    capped_h: float
    """Hours in which more pods were desired than these settings allow."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WhatIf:
    """All of one application."""

    days: int
    watched_h: float
    seen: Seen
    present: Outcome
    pod_error: float | None
    """Part by which the computed pod-hours are too many; None if there were none."""
    held_error: float | None
    refusal: str
    """Why no other settings are computed; empty if they are."""
    others: tuple[Outcome, ...]


@dataclass(slots=True)
class _Play:
    """One application under one policy, with one answer where the record has none."""

    pod_s: float = 0.0
    held_s: float = 0.0
    raises: set[float] = field(default_factory=set)
    """Times of decisions that began pods."""
    ended: dict[float, float] = field(default_factory=dict)
    """Times of decisions for fewer pods that had an effect, and when the last pod went for it."""


def what_if(rows: AppRows, policies: Sequence[Policy] | None = None) -> WhatIf:
    """The figures of one application.

    Args:
        rows: its tables, of the days to look at.
        policies: other settings; None takes some that are near to the present ones.
    """
    facts = Facts(rows)
    seen = _seen(rows, facts)
    as_it_was = _play(facts, Policy(), Case.USUAL)
    present = _outcome(facts, Policy(), as_it_was, ())
    days = len({row["dt"] for row in rows["s_seen"]})
    small = SMALL_HELD_S * days
    refusal = _refusal(facts, (present.pod_h.mid, seen.pod_h, 0.0), (present.held_s.mid, seen.held_s, small))
    chosen = () if refusal else alternatives(facts) if policies is None else policies
    others = tuple(_outcome(facts, policy, as_it_was, _notes(facts, policy)) for policy in chosen)
    errors = _error(present.pod_h.mid, seen.pod_h), _error(present.held_s.mid, seen.held_s)
    return WhatIf(days, facts.watched_s / 3600, seen, present, *errors, refusal, others)


def alternatives(facts: Facts) -> list[Policy]:
    """Settings near to the present ones, of which one can make a difference."""
    desired = [number for stretch in facts.stretches for _, number in stretch.desired]
    if not desired or not any(facts.absences):
        return []
    setting = facts.setting
    windows = [Policy(window_s=window) for window in WINDOWS if window != setting.window_s]
    has_waited = any(one.looks for of_stretch in facts.absences for one in of_stretch)
    lags = [Policy(lag=setting.lag * factor) for factor in LAG_FACTORS] if setting.lag and has_waited else []
    least, most = min(desired), max(desired)
    bounds = [Policy(least=least + 1)] if least + 1 < most else []
    bounds += [Policy(most=most - 1)] if least < most - 1 else []
    return [*windows, *lags, *bounds, Policy(least=most, most=most)]


def _seen(rows: AppRows, facts: Facts) -> Seen:
    stood = Stood()
    for row in rows["s_outage"]:
        if row["cause"] == "scale":
            stood += Stood(row["at_least_s"] or 0.0, row["at_most_s"] or 0.0)
    granted = [numbers for stretch in facts.stretches for numbers in _pairs(stretch)]
    return Seen(
        pod_h=sum(row["replica_h"] or 0.0 for row in rows["g_autoscaler_daily"]),
        held_s=sum(row["blame_s"] for row in rows["g_hold_blame"]),
        stood=stood,
        raises=sum(after > before for before, after in granted),
        removals=sum(after < before for before, after in granted),
    )


def _pairs(stretch: Stretch) -> Iterable[tuple[int, int]]:
    numbers = [number for _, number in stretch.granted]
    return pairwise(numbers)


def _error(computed: float, seen: float) -> float | None:
    return computed / seen - 1 if seen else None


Compared = tuple[float, float, float]
"""A figure as computed and as seen, and the difference that is no matter."""


def _refusal(facts: Facts, pods: Compared, held: Compared) -> str:
    if not facts.stretches:
        return "no decision is in the record"
    far = [
        what
        for what, (computed, seen, small) in (("pod-hours", pods), ("time held", held))
        if abs(computed - seen) > max(small, LARGEST_ERROR * seen)
    ]
    if not far:
        return ""
    return (
        f"the same arithmetic misses the {' and the '.join(far)} by more than {share(LARGEST_ERROR)}, so something "
        "besides these settings moved the pods, such as a pause or an override"
    )


def _play(facts: Facts, policy: Policy, case: Case) -> _Play:
    play = _Play()
    for stretch, absences in zip(facts.stretches, facts.absences, strict=True):
        away: list[tuple[float, float]] = []
        by_level = {(one.level, one.began): one for one in absences}
        top = max(number for _, number in (*stretch.desired, *stretch.granted))
        play.pod_s += (policy.least or 0) * (stretch.end - stretch.start)
        for level in range(1 + (policy.least or 0), 1 + min(top, top if policy.most is None else policy.most)):
            wanted = spans(stretch.desired, stretch.end, level)
            play.pod_s += sum(end - start for start, end in wanted)
            stays: set[float] = {stretch.start}
            for (_, began), absence in by_level.items():
                if absence.level != level:
                    continue
                left = min(absence.ended, began + stay_s(facts, absence, policy, case))
                away.append((began, left))
                if left < absence.ended:
                    play.ended[began] = max(left, play.ended.get(began, left))
                else:
                    stays.add(absence.ended)
            play.raises |= {start for start, _ in wanted} - stays
        play.pod_s += sum(end - start for start, end in away)
        play.held_s += _length(away)
    return play


def _length(parts: Iterable[tuple[float, float]]) -> float:
    """Seconds in which at least one of them lasts."""
    whole, reached = 0.0, float("-inf")
    for start, end in sorted(parts):
        whole += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return whole


def _outcome(facts: Facts, policy: Policy, as_it_was: _Play, notes: Sequence[str]) -> Outcome:
    low, mid, high = (_play(facts, policy, case) for case in Case)
    above = [
        end - start
        for stretch in facts.stretches
        if policy.most is not None
        for start, end in spans(stretch.desired, stretch.end, policy.most + 1)
    ]
    return Outcome(
        title=policy.title,
        policy=policy,
        pod_h=Range(low.pod_s / 3600, mid.pod_s / 3600, high.pod_s / 3600),
        held_s=Range(low.held_s, mid.held_s, high.held_s),
        stood=_stood(facts, policy, as_it_was, mid),
        raises=len(mid.raises),
        removals=len(set(mid.ended.values())),
        capped_h=sum(above) / 3600,
        notes=(*notes, *([_capped(policy, sum(above))] if sum(above) else [])),
    )


def _capped(policy: Policy, seconds: float) -> str:
    return (
        f"for {duration(seconds)} more than {count(policy.most)} pods were desired; the record has no load, so whether "
        "these pods would have kept up is unknown"
    )


def _stood(facts: Facts, policy: Policy, as_it_was: _Play, play: _Play) -> Stood:
    """What tasks stood: changes that fall away cost nothing, new ones what is usual, all others what they did."""
    whole = facts.stood
    for is_raise, before, after in (
        (True, as_it_was.raises, play.raises),
        (False, {*as_it_was.ended}, {*play.ended}),
    ):
        gone = {facts.change(at, is_raise=is_raise) for at in before - after}
        for change in gone - {None, *(facts.change(at, is_raise=is_raise) for at in after)}:
            if change is not None:
                whole += Stood(-change.stood.least, -change.stood.most)
        usual, new = facts.usual_stood(is_raise=is_raise), len(after - before)
        whole += Stood(usual.least * new, usual.most * new)
    price = Stood(0.0, _price_s(facts, policy, play))
    # What is taken away again leaves a trace of rounding.
    return Stood(max(0.0, round(whole.least, 6)), max(0.0, round(whole.most, 6))) + price


def _price_s(facts: Facts, policy: Policy, play: _Play) -> float:
    """Task-seconds for which tasks that move stand longer with a larger lag limit, at most."""
    limit = facts.setting.lag
    if policy.lag is None or limit is None or policy.lag <= limit or not facts.slow_rate:
        return 0.0
    moved = sum(change.moved for at in play.ended if (change := facts.change(at, is_raise=False)))
    return moved * (policy.lag - limit) / facts.slow_rate


def _notes(facts: Facts, policy: Policy) -> list[str]:
    """What the figures of some settings rest on, or do not know."""
    notes = []
    unknown = [one for of_stretch in facts.absences for one in of_stretch if one.gone is None]
    if unknown and (policy.window_s is not None or policy.lag is not None):
        known = facts.usual_rest is not None
        rest = "what is usual here is taken for them" if known else "too few others were, so that they count as kept"
        notes.append(f"{len({one.began for one in unknown})} removals were not seen to their end: {rest}")
    if policy.lag is not None and facts.setting.lag is None:
        notes.append("the lag limit is not in the record, so that another one changes nothing here")
    elif policy.lag is not None and not facts.slow_rate:
        notes.append("no restore rate is known, so that the cost of another lag limit is not in these figures")
    most = max((number for stretch in facts.stretches for _, number in stretch.desired), default=0)
    if policy.most is not None and policy.most > most and policy.least != policy.most:
        notes.append(
            f"more than {count(most)} pods were never desired: whether the autoscaler would have used "
            "more is not in the record"
        )
    return notes
