"""The rules of advice: each looks at the facts of one application and says what to change, or nothing. Pure.

A rule speaks only where its figures are of at least so many cases, and names what must be looked at before.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Final

from streamapp.analytics.report.advice.bounds import (
    acceptable_lag,
    autoscaler_maximum,
    autoscaler_minimum,
    leftover_claims,
)
from streamapp.analytics.report.advice.facts import Facts, enough
from streamapp.analytics.report.advice.model import Advice, Effect
from streamapp.analytics.report.advice.raises import useless_raises
from streamapp.analytics.report.advice.sizes import volume_size
from streamapp.analytics.report.advice.volumes import slow_siblings
from streamapp.analytics.report.amounts import duration
from streamapp.analytics.report.facts import AUTOSCALERS
from streamapp.analytics.report.rows import AppRows, Row

LEAST_FLAPS: Final = 2.0
"""Flap pairs a day from which on a window is proposed."""
WINDOWS: Final = (60, 120, 300, 600, 900, 1800, 3600)
"""Seconds; a HorizontalPodAutoscaler takes 3600 at most."""
REMOVED_SHARE: Final = 0.8
"""Of the flap pairs, that a window must remove."""
IDLE_SHARE: Final = 0.05
"""Of all pod-hours, that pods without effect must have."""
LEAST_SAVED: Final = 60.0
"""Task-seconds a week that a warm copy must save."""
DAYS_TO_BE_SURE: Final = 14
"""Below as many days each piece of advice says that it rests on few."""


def advice(rows: AppRows) -> list[Advice]:
    """All advice for one application, the surest kind first; one that is empty if there is nothing to advise."""
    facts = Facts(rows, len({row["dt"] for row in rows["s_seen"]}))
    few = (f"only {facts.days} of {DAYS_TO_BE_SURE} days are known",) if facts.days < DAYS_TO_BE_SURE else ()
    found = [replace(one, vetoes=(*one.vetoes, *few)) for rule in RULES for one in rule(facts)]
    if found:
        return found
    words = f"{facts.days} days were looked at; no rule applies"
    return [Advice(knob="", current="", proposed="", evidence=words, days=facts.days, n=0, vetoes=few)]


def flapping(facts: Facts) -> Iterator[Advice]:
    """An autoscaler whose changes are taken back: the shortest window that removes most of them."""
    steps = sorted(facts.rows["s_scale_episode"], key=lambda row: row["t_event"])
    if not any(step["actor"] in AUTOSCALERS for step in steps):
        return
    # A change that begins no turn needs no window: removals that are followed by a raise are kept up, others are not.
    way, turns = max((("down", _turns(steps, "down")), ("up", _turns(steps, "up"))), key=lambda one: len(one[1]))
    window = next((w for w in WINDOWS if sum(turn < w for turn in turns) >= REMOVED_SHARE * len(turns)), None)
    if len(turns) >= LEAST_FLAPS * facts.days and window is not None:
        yield _window(facts, way, turns, window)


def _turns(steps: Sequence[Row], way: str) -> list[float]:
    """Seconds after which each change in one direction was taken back by at least as much, within an hour."""
    found = []
    for one, other in pairwise(steps):
        apart = other["t_event"] - one["t_event"]
        sizes = [abs(step["to_replicas"] - step["from_replicas"]) for step in (one, other)]
        is_turn = one["direction"] == way != other["direction"] and sizes[1] >= sizes[0]
        if is_turn and apart <= timedelta(hours=1):
            found.append(apart.total_seconds())
    return found


def _window(facts: Facts, way: str, turns: Sequence[float], window: int) -> Advice:
    removed = sum(turn < window for turn in turns) / facts.days
    name = "scaleUp" if way == "up" else "scaleDown"
    patch = {"spec": {"behavior": {name: {"stabilizationWindowSeconds": window}}}}
    longest = duration(max(turns))
    return Advice(
        knob=f"HorizontalPodAutoscaler {name} window",
        current=_present_window(facts, way),
        proposed=duration(window),
        evidence=f"{len(turns)} changes {way} were taken back, each within {longest}",
        days=facts.days,
        n=len(turns),
        effect=Effect(removed * REMOVED_SHARE, removed, removed, "flap pairs fewer a day"),
        vetoes=(f"each change {way} begins {duration(window)} later: see that the lag allows it",),
        patch=patch,
        object="HorizontalPodAutoscaler",
        name=facts.autoscaler,
    )


def _present_window(facts: Facts, way: str) -> str:
    """The window of the newest active autoscaler, if its spec has one."""
    rows = [row for row in facts.rows["s_autoscaler_interval"] if row["is_active"]]
    seconds = max(rows, key=lambda row: row["t_end"], default={f"{way}_window_seconds": None})[f"{way}_window_seconds"]
    return "not in the record" if seconds is None else duration(seconds)


def idle_pods(facts: Facts) -> Iterator[Advice]:
    """Replica counts at which the busiest thread has as many tasks as with fewer pods."""
    tasks, per_pod, hours = facts.tasks, facts.threads, facts.hours_by_pods()
    if not tasks or not per_pod:
        return
    idle = {pods: spent * (pods - enough(tasks, pods, per_pod)) for pods, spent in hours.items()}
    whole, lost = sum(pods * spent for pods, spent in hours.items()), sum(idle.values())
    if not lost or lost < IDLE_SHARE * whole:
        return
    wasteful = sorted(pods for pods, spent in idle.items() if spent)
    pays = sorted({enough(tasks, pods, per_pod) for pods in range(1, max(hours) + 1)})
    yield Advice(
        knob="replicas",
        current=f"{', '.join(map(str, wasteful))} pods at times",
        proposed=f"only {', '.join(map(str, pays))} pods",
        evidence=f"{tasks} tasks on {per_pod} threads a pod: other counts leave the busiest thread as many tasks",
        days=facts.days,
        n=len(wasteful),
        effect=Effect(lost, lost, lost, "pod-hours fewer"),
        vetoes=("tasks are taken to be equally heavy", "a spare pod shortens a failover"),
    )


def warm_copies(facts: Facts) -> Iterator[Advice]:
    """Tasks without a standby that stood after crashes and evictions."""
    if facts.config.get("standby_replicas") != 0:
        return
    stood = [row for row in facts.rows["s_outage"] if row["cause"] in {"crash", "eviction"}]
    least, most = (sum(row[name] for row in stood) for name in ("at_least_s", "at_most_s"))
    if not facts.days or least < LEAST_SAVED * facts.days / 7:
        return
    yield Advice(
        knob="num.standby.replicas",
        current="0",
        proposed="1",
        evidence=f"tasks stood for {duration(least)} to {duration(most)} after crashes and evictions",
        days=facts.days,
        n=len(stood),
        effect=Effect(least / 2, least, most, "task-seconds fewer"),
        vetoes=("each pod keeps its state twice: see that the volumes have room",),
    )


RULES: Final[Iterable[Callable[[Facts], Iterator[Advice]]]] = (
    slow_siblings,
    flapping,
    acceptable_lag,
    volume_size,
    autoscaler_maximum,
    autoscaler_minimum,
    useless_raises,
    idle_pods,
    warm_copies,
    leftover_claims,
)
