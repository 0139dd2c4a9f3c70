"""Advice about bounds: those of the autoscaler, the lag at which a copy counts as caught up, leftover claims. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from math import ceil
from typing import Any, Final

from streamapp.analytics.report.advice.facts import Facts, enough, next_that_pays, spent
from streamapp.analytics.report.advice.model import Advice, Effect
from streamapp.analytics.report.amounts import duration, rate, share
from streamapp.analytics.report.rows import Row

AT_MOST_SHARE: Final = 0.1
"""Of the time, that an autoscaler must want its maximum."""
BELOW_SHARE: Final = 0.25
"""Of the time, in which an autoscaler must want fewer pods than its minimum."""
LEAST_HOLDS: Final = 5
"""Scale-downs that waited for copies, before another lag is proposed."""
OF_KEDA: Final = "keda-hpa-"
"""How the names of autoscalers begin that KEDA makes, and writes over."""
LIMITS: Final = (2, 5, 10, 20, 50)
"""Multiples of the present lag that are tried."""
PRICE_S: Final = 1.0
"""Seconds by which a task may stand longer, at most, for a larger lag."""
SAVED_SHARE: Final = 0.25
"""Of the held time, that a larger lag must save."""
LEAST_SAVED_S: Final = 60.0
"""Of each hold, in the mean."""
IDLE_DAYS: Final = 7.0
"""After which an unused claim is a leftover."""
WORTH_S: Final = 20 * 3600.0
"""`state.maxIdleTime` unless set: state that was unused for longer is deleted before the application starts."""


def autoscaler_maximum(facts: Facts) -> Iterator[Advice]:
    """An autoscaler that stands at its maximum, where one with more pods would share the work better."""
    if not facts.tasks or not facts.threads:
        return
    for name, rows in _autoscalers(facts):
        most = max(rows, key=lambda row: row["t_end"])["max_replicas"]
        same = [row for row in rows if row["max_replicas"] == most]
        whole = sum(map(spent, same))
        full = [row for row in same if row["desired_replicas"] >= most]
        better = next_that_pays(facts.tasks, most, facts.threads)
        if not whole or better is None or sum(map(spent, full)) < AT_MOST_SHARE * whole:
            continue
        hours = sum(map(spent, full)) / 3600
        yield Advice(
            knob=f"HorizontalPodAutoscaler {name} maximum",
            current=f"{most} pods",
            proposed=f"{better} pods",
            evidence=f"it stood at its maximum for {share(hours * 3600 / whole)} of {duration(whole)}; with "
            f"{facts.tasks} tasks and a pod's {facts.threads} threads, {better} pods are the next that pay",
            days=facts.days,
            n=len(full),
            effect=Effect(0.0, hours, hours, "hours with a larger fleet"),
            vetoes=("the record has no load: see that the autoscaler's metric was above its target then",),
            patch={"spec": {"maxReplicas": better}},
            object="HorizontalPodAutoscaler",
            name=name,
        )


def _autoscalers(facts: Facts) -> list[tuple[str, list[Row]]]:
    """The states of each autoscaler in which it was at work and its numbers were known, by name."""
    by_name: dict[str, list[Row]] = defaultdict(list)
    for row in facts.rows["s_autoscaler_interval"]:
        if row["is_active"] and row["max_replicas"] and row["desired_replicas"] is not None:
            by_name[row["name"]].append(row)
    return sorted(by_name.items())


def autoscaler_minimum(facts: Facts) -> Iterator[Advice]:
    """An autoscaler that is kept at its minimum, and says itself that it wants fewer pods."""
    for name, rows in _autoscalers(facts):
        least = max(rows, key=lambda row: row["t_end"])["min_replicas"] or 1
        same = [row for row in rows if row["min_replicas"] == least]
        below = [row for row in same if row["limited_by"] == "TooFewReplicas"]
        whole, low = sum(map(spent, same)), sum(map(spent, below))
        if least < 2 or not whole or low < BELOW_SHARE * whole:
            continue
        # Of the counts below, the largest that no smaller one equals: the autoscaler takes more where it wants them.
        known = facts.tasks and facts.threads
        proposed = enough(facts.tasks, least - 1, facts.threads) if known else least - 1
        yield Advice(
            knob=f"HorizontalPodAutoscaler {name} minimum",
            current=_pods(least),
            proposed=_pods(proposed),
            evidence=f"for {share(low / whole)} of {duration(whole)} it wanted fewer pods than its minimum",
            days=facts.days,
            n=len(below),
            effect=_fewer(low / 3600, least - proposed),
            vetoes=_of_minimum(facts, name, proposed),
            patch={"spec": {"minReplicas": proposed}},
            object="HorizontalPodAutoscaler",
            name=name,
        )


def _fewer(hours: float, most: int) -> Effect:
    """It wanted one pod fewer at least; how many it would have wanted is not known."""
    return Effect(hours, hours * (1 + most) / 2, hours * most, "pod-hours fewer")


def _of_minimum(facts: Facts, name: str, proposed: int) -> tuple[str, ...]:
    vetoes = ["a rise of the load begins with fewer pods: see how long a scale-up takes"]
    if facts.tasks:
        each = ceil(facts.tasks / proposed)
        vetoes.append(f"a pod has up to {each} stateful tasks then: see that its memory and its volume have room")
    if name.startswith(OF_KEDA):
        vetoes.append("KEDA made this autoscaler: set `minReplicaCount` of its ScaledObject and not the patch")
    return tuple(vetoes)


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


def acceptable_lag(facts: Facts) -> Iterator[Advice]:
    """A larger `acceptableRecoveryLag`: what each hold would have saved, and what a task would stand longer for it."""
    limit = facts.config.get("lag_limit")
    rates = [row["rate_p10"] for row in facts.rows["g_restore_profile"] if row["scope"] == "subtopology"]
    slowest = min(rates, default=0.0)
    holds = _holds(facts.rows["s_decision_interval"])
    if not limit or not slowest or len(holds) < LEAST_HOLDS:
        return
    held = sum(end - looks[0][0] for looks, end in holds)
    tried = [limit * factor for factor in LIMITS if limit * factor / slowest <= PRICE_S]
    saved = {larger: [_saved(looks, end, larger) for looks, end in holds] for larger in tried}
    # The smallest that saves nearly all that any of them does.
    best = max((sum(of_one) for of_one in saved.values()), default=0.0)
    chosen = next((larger for larger in tried if sum(saved[larger]) >= 0.9 * best), None)
    if chosen is None or best < max(SAVED_SHARE * held, LEAST_SAVED_S * len(holds)):
        return
    each = sorted(saved[chosen])
    yield Advice(
        knob="acceptableRecoveryLag",
        current=f"{limit:,}",
        proposed=f"{chosen:,}",
        evidence=f"{len(holds)} scale-downs waited {duration(held)} for copies, the last part of it for a lag below "
        f"{chosen:,}; at {rate(slowest)} slots/s, the slowest tenth, that is {duration(chosen / slowest)} of restoring",
        days=facts.days,
        n=len(holds),
        effect=Effect(each[0], sum(each) / len(each), each[-1], "seconds of each hold fewer"),
        vetoes=(
            f"a task that moves can stand {duration(chosen / slowest)} longer",
            "the application's own acceptable.recovery.lag must be as large",
        ),
        patch={"spec": {"learners": {"acceptableRecoveryLag": chosen}}},
        object="StreamApp",
        name=facts.name,
    )


Looks = list[tuple[float, int | None]]
"""The time of each look in seconds, with the lag of the furthest copy; None if unknown."""


def _holds(decisions: Sequence[Row]) -> list[tuple[Looks, float]]:
    """The looks of each hold that waited for copies, and its end in seconds."""
    by_hold: dict[str, list[Row]] = defaultdict(list)
    for row in decisions:
        if row["hold_id"] and row["reason"] == "LearnersCatchingUp":
            by_hold[row["hold_id"]].append(row)
    found = []
    for rows in by_hold.values():
        ordered = sorted(rows, key=lambda row: row["t_start"])
        looks: Looks = [(row["t_start"].timestamp(), row["furthest_lag"]) for row in ordered]
        found.append((looks, ordered[-1]["t_end"].timestamp()))
    return found


def _saved(looks: Looks, end: float, larger: int) -> float:
    """Seconds from the second of two looks in a row within the larger limit, as the operator asks for, to the end."""
    near = [lag is not None and lag <= larger for _, lag in looks]
    for nth in range(1, len(looks)):
        if near[nth - 1] and near[nth]:
            return end - looks[nth][0]
    return 0.0


def leftover_claims(facts: Facts) -> Iterator[Advice]:
    """Claims that no pod used for so long that their state would be deleted before it is used again."""
    end = facts.end
    used: dict[str, list[Row]] = defaultdict(list)
    for row in facts.rows["s_pod_interval"]:
        if row["volume"] and not row["is_gone"]:
            used[row["volume"]].append(row)
    if end is None:
        return
    idle = {volume: _last(rows) for volume, rows in used.items()}
    left = {volume: at for volume, at in idle.items() if (end - at).total_seconds() > IDLE_DAYS * 86_400}
    if not left:
        return
    back = [pause for rows in used.values() for pause in _absences(rows)]
    worth = [pause for pause in back if pause <= WORTH_S]
    sizes = [max((row["state_bytes"] or 0 for row in used[volume]), default=0) for volume in left]
    shortest = min((end - at).total_seconds() for at in left.values())
    returns = f"ordinals came back {len(back)} times, {len(worth)} of them within {duration(WORTH_S)}"
    patch: dict[str, Any] | None = None if worth else {"spec": {"state": {"retention": {"whenScaled": "Delete"}}}}
    yield Advice(
        knob="leftover claims",
        current=", ".join(sorted(left)),
        proposed="delete them" if worth else "delete them, and those of later scale-downs at once",
        evidence=f"no pod used them for {duration(shortest)} or longer; {returns}",
        days=facts.days,
        n=len(left),
        effect=Effect(0.0, sum(sizes) / 1e9, sum(sizes) / 1e9, "GB fewer, as far as agents told sizes"),
        vetoes=(f"with a `state.maxIdleTime` above {duration(WORTH_S)} such a state can still be used",),
        patch=patch,
        object="StreamApp" if patch else "",
        name=facts.name,
    )


def _last(rows: Sequence[Row]) -> datetime:
    found: datetime = max(row["t_end"] for row in rows)
    return found


def _absences(rows: Sequence[Row]) -> Iterator[float]:
    """Seconds between two times that a claim was used, longer than a restart."""
    ordered = sorted(rows, key=lambda row: row["t_start"])
    end = ordered[0]["t_end"]
    for row in ordered[1:]:
        pause = (row["t_start"] - end).total_seconds()
        if pause > 600:
            yield pause
        end = max(end, row["t_end"])
